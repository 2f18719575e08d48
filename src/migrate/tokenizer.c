/* tokenizer.c: see tokenizer.h. */
#include "migrate/tokenizer.h"

#include <string.h>

#include "base/digest.h"
#include "base/encode.h"

enum { TEXT_MAX = 8 << 20, UUID_LEN = 36 };

struct fgw_migrate_lexer fgw_migrate_lexer(struct fgw_bytes text)
{
    bool mark = fgw_bytes_starts_with(text, FGW_LIT("\xEF\xBB\xBF"));
    return (struct fgw_migrate_lexer){.text = text, .at = mark ? 3 : 0, .line = 1};
}

/* 0 behind the end: a NUL byte inside the text is refused before it could be taken for that. */
static uint8_t peek(const struct fgw_migrate_lexer *lexer, size_t ahead)
{
    size_t at = lexer->at + ahead;
    return at < lexer->text.len ? lexer->text.ptr[at] : 0;
}

static void step(struct fgw_migrate_lexer *lexer)
{
    if (peek(lexer, 0) == '\n') {
        lexer->line++;
    }
    lexer->at++;
}

static bool ends(const struct fgw_migrate_lexer *lexer)
{
    return lexer->at >= lexer->text.len;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_word(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

static void skip_line(struct fgw_migrate_lexer *lexer)
{
    while (!ends(lexer) && peek(lexer, 0) != '\n' && peek(lexer, 0) != '\r') {
        step(lexer);
    }
}

static enum fgw_err skip_block_comment(struct fgw_migrate_lexer *lexer, struct fgw_error *error)
{
    uint32_t line = lexer->line;
    lexer->at += 2;
    while (!ends(lexer)) {
        if (peek(lexer, 0) == '*' && peek(lexer, 1) == '/') {
            lexer->at += 2;
            return FGW_OK;
        }
        step(lexer);
    }
    return fgw_error_set(error, FGW_ERR_PARSE, "line %u: comment is not closed", line);
}

static enum fgw_err skip_blanks(struct fgw_migrate_lexer *lexer, struct fgw_error *error)
{
    while (!ends(lexer)) {
        uint8_t c = peek(lexer, 0);
        uint8_t next = peek(lexer, 1);
        if (is_blank(c)) {
            step(lexer);
        } else if ((c == '-' && next == '-') || (c == '/' && next == '/')) {
            skip_line(lexer);
        } else if (c == '/' && next == '*') {
            enum fgw_err err = skip_block_comment(lexer, error);
            if (err != FGW_OK) {
                return err;
            }
        } else {
            return FGW_OK;
        }
    }
    return FGW_ERR_END;
}

/* To behind the closing quote; a doubled quote stands for itself. */
static enum fgw_err lex_quoted(struct fgw_migrate_lexer *lexer, uint8_t quote,
                               struct fgw_error *error)
{
    uint32_t line = lexer->line;
    lexer->at++;
    while (!ends(lexer)) {
        if (peek(lexer, 0) != quote) {
            step(lexer);
        } else if (peek(lexer, 1) == quote) {
            lexer->at += 2;
        } else {
            lexer->at++;
            return FGW_OK;
        }
    }
    return fgw_error_set(error, FGW_ERR_PARSE, "line %u: %c is not closed", line, quote);
}

static enum fgw_err lex_dollar(struct fgw_migrate_lexer *lexer, struct fgw_error *error)
{
    uint32_t line = lexer->line;
    lexer->at += 2;
    while (!ends(lexer)) {
        if (peek(lexer, 0) == '$' && peek(lexer, 1) == '$') {
            lexer->at += 2;
            return FGW_OK;
        }
        step(lexer);
    }
    return fgw_error_set(error, FGW_ERR_PARSE, "line %u: $$ is not closed", line);
}

static bool at_uuid(const struct fgw_migrate_lexer *lexer)
{
    for (size_t i = 0; i < UUID_LEN; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        uint8_t c = peek(lexer, i);
        if (dash ? c != '-' : !is_hex(c)) {
            return false;
        }
    }
    return !is_word(peek(lexer, UUID_LEN));
}

static void lex_number(struct fgw_migrate_lexer *lexer)
{
    bool hex = peek(lexer, 0) == '0' && (peek(lexer, 1) | 0x20) == 'x';
    lexer->at++;
    for (;;) {
        uint8_t c = peek(lexer, 0);
        bool exponent_sign = !hex && (c == '-' || c == '+') &&
                             (lexer->text.ptr[lexer->at - 1] | 0x20) == 'e' &&
                             is_digit(peek(lexer, 1));
        if (!is_word(c) && c != '.' && !exponent_sign) {
            return;
        }
        lexer->at++;
    }
}

static void lex_word(struct fgw_migrate_lexer *lexer)
{
    while (is_word(peek(lexer, 0))) {
        lexer->at++;
    }
}

static enum fgw_err lex_other(struct fgw_migrate_lexer *lexer, struct fgw_error *error)
{
    uint8_t c = peek(lexer, 0);
    if (c == 0 || strchr("(),;.<>=[]{}:*?+-/%&|!@", c) == NULL) {
        return fgw_error_set(error, FGW_ERR_PARSE, "line %u: byte 0x%02x outside a string",
                             lexer->line, c);
    }
    lexer->at++;
    return FGW_OK;
}

/* Advances over one token and tells its kind. */
static enum fgw_err lex_token(struct fgw_migrate_lexer *lexer, struct fgw_error *error,
                              enum fgw_migrate_token_kind *out_kind)
{
    uint8_t c = peek(lexer, 0);
    *out_kind = FGW_MIGRATE_PUNCT;
    if (c == '\'' || (c == '$' && peek(lexer, 1) == '$')) {
        *out_kind = FGW_MIGRATE_STRING;
        return c == '$' ? lex_dollar(lexer, error) : lex_quoted(lexer, c, error);
    }
    if (c == '"') {
        *out_kind = FGW_MIGRATE_QUOTED;
        return lex_quoted(lexer, c, error);
    }
    if (at_uuid(lexer)) {
        *out_kind = FGW_MIGRATE_NUMBER;
        lexer->at += UUID_LEN;
        return FGW_OK;
    }
    if (is_digit(c) || (c == '-' && is_digit(peek(lexer, 1)))) {
        *out_kind = FGW_MIGRATE_NUMBER;
        lex_number(lexer);
        return FGW_OK;
    }
    if (is_word(c)) {
        *out_kind = FGW_MIGRATE_WORD;
        lex_word(lexer);
        return FGW_OK;
    }
    return lex_other(lexer, error);
}

enum fgw_err fgw_migrate_lex(struct fgw_migrate_lexer *lexer, struct fgw_error *error,
                             struct fgw_migrate_token *out_token)
{
    enum fgw_err err = skip_blanks(lexer, error);
    if (err != FGW_OK) {
        return err;
    }
    size_t from = lexer->at;
    uint32_t line = lexer->line;
    enum fgw_migrate_token_kind kind;
    err = lex_token(lexer, error, &kind);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_bytes text = fgw_bytes_sub(lexer->text, from, lexer->at - from);
    if (text.len > 0 && memchr(text.ptr, 0, text.len) != NULL) {
        return fgw_error_set(error, FGW_ERR_PARSE, "line %u: NUL byte", line);
    }
    *out_token = (struct fgw_migrate_token){kind, text, line};
    return FGW_OK;
}

static bool is_end_of_statement(const struct fgw_migrate_token *token)
{
    return token->kind == FGW_MIGRATE_PUNCT && token->text.ptr[0] == ';';
}

/* First pass: counts only, so that the second fills arrays of the right size. */
static enum fgw_err count_tokens(struct fgw_bytes text, struct fgw_error *error, size_t *out_tokens,
                                 size_t *out_statements)
{
    struct fgw_migrate_lexer lexer = fgw_migrate_lexer(text);
    size_t tokens = 0;
    size_t statements = 1;
    for (;;) {
        struct fgw_migrate_token token;
        enum fgw_err err = fgw_migrate_lex(&lexer, error, &token);
        if (err == FGW_ERR_END) {
            *out_tokens = tokens;
            *out_statements = statements;
            return FGW_OK;
        }
        if (err != FGW_OK) {
            return err;
        }
        tokens++;
        statements += is_end_of_statement(&token) ? 1 : 0;
    }
}

enum fgw_err fgw_migrate_split(struct fgw_arena *arena, struct fgw_bytes text,
                               struct fgw_error *error, struct fgw_migrate_texts *out_texts)
{
    if (text.len > TEXT_MAX) {
        return fgw_error_set(error, FGW_ERR_TOO_LARGE, "longer than %d bytes", TEXT_MAX);
    }
    size_t tokens = 0;
    size_t statements = 0;
    enum fgw_err err = count_tokens(text, error, &tokens, &statements);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_migrate_token *all = fgw_arena_alloc(arena, tokens * sizeof *all);
    struct fgw_migrate_texts texts = {fgw_arena_zalloc(arena, statements * sizeof *texts.items), 0};
    struct fgw_migrate_tokens open = {all, 0};
    struct fgw_migrate_lexer lexer = fgw_migrate_lexer(text);
    struct fgw_migrate_token token;
    while ((err = fgw_migrate_lex(&lexer, error, &token)) == FGW_OK) {
        if (!is_end_of_statement(&token)) {
            open.items[open.count++] = token;
            continue;
        }
        if (open.count > 0) {
            texts.items[texts.count++] = open;
        }
        open = (struct fgw_migrate_tokens){open.items + open.count, 0};
    }
    if (open.count > 0) {
        texts.items[texts.count++] = open;
    }
    *out_texts = texts;
    return err == FGW_ERR_END ? FGW_OK : err;
}

char *fgw_migrate_normalise(struct fgw_arena *arena, struct fgw_migrate_tokens tokens)
{
    size_t len = 1;
    for (size_t i = 0; i < tokens.count; i++) {
        len += tokens.items[i].text.len + 1;
    }
    char *out = fgw_arena_alloc(arena, len);
    char *end = out;
    for (size_t i = 0; i < tokens.count; i++) {
        struct fgw_bytes text = tokens.items[i].text;
        if (i > 0) {
            *end++ = ' ';
        }
        memcpy(end, text.ptr, text.len);
        end += text.len;
    }
    *end = '\0';
    return out;
}

void fgw_migrate_sha(struct fgw_bytes text, char out_sha[FGW_MIGRATE_SHA_MAX])
{
    uint8_t digest[FGW_SHA256_SIZE];
    fgw_sha256(text, digest);
    memcpy(out_sha, "s1:", 3);
    fgw_hex_encode(fgw_bytes(digest, sizeof digest), out_sha + 3);
    out_sha[3 + 2 * FGW_SHA256_SIZE] = '\0';
}
