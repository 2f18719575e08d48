/* tokenizer.h: CQL text into tokens, statements and hashes.
 *
 * Knows every form in which a ';' or a quote is not what it seems: '...' with doubled quotes,
 * "...", $$...$$, -- and // to the end of the line, and slash-star comments (not nested). Comments
 * and blanks never become tokens, so a statement's tokens joined by single blanks are its
 * normalised text; its hash carries the prefix "s1:" so that the rule can change later without
 * false alarms. Tokens are views into the text handed in. No state, any thread.
 */
#ifndef FGW_MIGRATE_TOKENIZER_H
#define FGW_MIGRATE_TOKENIZER_H

#include "base/arena.h"
#include "base/bytes.h"

enum fgw_migrate_token_kind {
    FGW_MIGRATE_WORD,   /* unquoted name or keyword */
    FGW_MIGRATE_QUOTED, /* "name" */
    FGW_MIGRATE_STRING, /* 'text' or $$text$$ */
    FGW_MIGRATE_NUMBER, /* number, 0x blob or uuid */
    FGW_MIGRATE_PUNCT   /* one character */
};

struct fgw_migrate_token {
    enum fgw_migrate_token_kind kind;
    struct fgw_bytes text; /* as written, quotes included */
    uint32_t line;         /* from 1 */
};

struct fgw_migrate_lexer {
    struct fgw_bytes text;
    size_t at;
    uint32_t line;
};

/* Skips a UTF-8 byte order mark. */
struct fgw_migrate_lexer fgw_migrate_lexer(struct fgw_bytes text);
/* FGW_OK with a token; FGW_ERR_END; FGW_ERR_PARSE (unterminated string or comment, NUL byte, a
 * character CQL does not have) with the line in `error`. */
enum fgw_err fgw_migrate_lex(struct fgw_migrate_lexer *lexer, struct fgw_error *error,
                             struct fgw_migrate_token *out_token) FGW_MUST_CHECK;

struct fgw_migrate_tokens {
    struct fgw_migrate_token *items;
    size_t count;
};

struct fgw_migrate_texts {
    struct fgw_migrate_tokens *items; /* one a statement, without the ';' */
    size_t count;
};

/* Splits at ';'; empty statements (also a doubled ';') vanish: they have crashed servers
 * (yugabyte-db #5270). FGW_ERR_TOO_LARGE above 8 MiB. */
enum fgw_err fgw_migrate_split(struct fgw_arena *arena, struct fgw_bytes text,
                               struct fgw_error *error,
                               struct fgw_migrate_texts *out_texts) FGW_MUST_CHECK;

/* Tokens joined by single blanks, NUL-terminated. */
char *fgw_migrate_normalise(struct fgw_arena *arena, struct fgw_migrate_tokens tokens)
    __attribute__((returns_nonnull));

/* "s1:" and 64 hex digits. */
enum { FGW_MIGRATE_SHA_MAX = 72 };
void fgw_migrate_sha(struct fgw_bytes text, char out_sha[FGW_MIGRATE_SHA_MAX]);

#endif
