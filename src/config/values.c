/* values.c: from the text of one setting to its typed field. No I/O. */
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "config/config_internal.h"

enum fgw_err refuse(struct value_parser *parser, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(parser->reason, sizeof parser->reason, format, args);
    va_end(args);
    return FGW_ERR_PARSE;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* "12MiB", "12 mib": a whole number and one of the units. */
static enum fgw_err scaled_from_text(struct fgw_bytes text, const struct unit *units, size_t count,
                                     uint64_t *out)
{
    size_t digits = 0;
    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9') {
        digits++;
    }
    uint64_t number;
    if (fgw_bytes_to_u64(fgw_bytes_sub(text, 0, digits), &number) != FGW_OK) {
        return FGW_ERR_PARSE;
    }
    struct fgw_bytes unit = fgw_bytes_trim(fgw_bytes_sub(text, digits, SIZE_MAX));
    for (size_t i = 0; i < count; i++) {
        if (fgw_bytes_ieq_str(unit, units[i].name)) {
            return __builtin_mul_overflow(number, units[i].factor, out) ? FGW_ERR_PARSE : FGW_OK;
        }
    }
    return FGW_ERR_PARSE;
}

enum fgw_err size_from_text(struct fgw_bytes text, uint64_t *out_bytes)
{
    static const struct unit UNITS[] = {
        {"B", 1},
        {"KiB", 1ULL << 10},
        {"MiB", 1ULL << 20},
        {"GiB", 1ULL << 30},
        {"TiB", 1ULL << 40},
    };
    return scaled_from_text(text, UNITS, FGW_COUNT_OF(UNITS), out_bytes);
}

enum fgw_err fgw_config_size(struct fgw_bytes text, uint64_t *out_bytes)
{
    return size_from_text(text, out_bytes);
}

static enum fgw_err rate_from_text(struct fgw_bytes text, uint64_t *out)
{
    struct fgw_bytes per_second = FGW_LIT("/s");
    if (!fgw_bytes_ends_with(text, per_second)) {
        return FGW_ERR_PARSE;
    }
    return size_from_text(fgw_bytes_sub(text, 0, text.len - per_second.len), out);
}

enum fgw_err duration_from_text(struct fgw_bytes text, uint64_t *out_ms)
{
    static const struct unit UNITS[] = {
        {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000},
    };
    return scaled_from_text(text, UNITS, FGW_COUNT_OF(UNITS), out_ms);
}

typedef enum fgw_err number_reader(struct fgw_bytes text, uint64_t *out);

static number_reader *reader_of(enum setting_kind kind)
{
    switch (kind) {
    case KIND_SIZE:
        return size_from_text;
    case KIND_RATE:
        return rate_from_text;
    case KIND_DURATION:
        return duration_from_text;
    default:
        return fgw_bytes_to_u64;
    }
}

static const char *number_form(enum setting_kind kind)
{
    switch (kind) {
    case KIND_SIZE:
        return "not a size (a whole number and B, KiB, MiB, GiB or TiB)";
    case KIND_RATE:
        return "not a rate (a size and /s, as in 1KiB/s)";
    case KIND_DURATION:
        return "not a duration (a whole number and ms, s, m, h or d)";
    default:
        return "not a whole number";
    }
}

/* The "least..most" of settings.def; a mistake there is a programmer's. */
static void bounds_of(const struct setting *setting, uint64_t *out_least, uint64_t *out_most)
{
    number_reader *read = setting_is_secret(setting) ? fgw_bytes_to_u64 : reader_of(setting->kind);
    struct fgw_bytes allowed = fgw_bytes_str(setting->allowed);
    size_t dots = fgw_bytes_find(allowed, FGW_LIT(".."), 0);
    FGW_CHECK(dots != SIZE_MAX);
    FGW_CHECK(read(fgw_bytes_sub(allowed, 0, dots), out_least) == FGW_OK);
    FGW_CHECK(read(fgw_bytes_sub(allowed, dots + 2, SIZE_MAX), out_most) == FGW_OK);
}

static enum fgw_err parse_number(struct value_parser *parser, struct fgw_bytes text, uint64_t *out)
{
    uint64_t value;
    uint64_t least;
    uint64_t most;
    if (reader_of(parser->setting->kind)(text, &value) != FGW_OK) {
        return refuse(parser, "%s", number_form(parser->setting->kind));
    }
    bounds_of(parser->setting, &least, &most);
    if (value < least || value > most) {
        return refuse(parser, value < least ? "too small" : "too large");
    }
    *out = value;
    return FGW_OK;
}

static enum fgw_err parse_int(struct value_parser *parser, struct fgw_bytes text, unsigned *out)
{
    uint64_t value = 0;
    enum fgw_err err = parse_number(parser, text, &value);
    if (err == FGW_OK) {
        *out = (unsigned)value;
    }
    return err;
}

static enum fgw_err parse_enum(struct value_parser *parser, struct fgw_bytes text, int *out)
{
    struct fgw_bytes rest = fgw_bytes_str(parser->setting->allowed);
    struct fgw_bytes word;
    for (int i = 0; fgw_bytes_split(&rest, '|', &word); i++) {
        char *name = fgw_arena_strdup(parser->arena, word);
        if (fgw_bytes_ieq_str(text, name)) {
            *out = i;
            return FGW_OK;
        }
    }
    return refuse(parser, "unknown word");
}

static enum fgw_err parse_bool(struct value_parser *parser, struct fgw_bytes text, bool *out)
{
    static const struct {
        const char *word;
        bool value;
    } WORDS[] = {
        {"on", true},   {"true", true},   {"yes", true}, {"1", true},
        {"off", false}, {"false", false}, {"no", false}, {"0", false},
    };
    for (size_t i = 0; i < FGW_COUNT_OF(WORDS); i++) {
        if (fgw_bytes_ieq_str(text, WORDS[i].word)) {
            *out = WORDS[i].value;
            return FGW_OK;
        }
    }
    return refuse(parser, "neither on nor off");
}

static enum fgw_err level_from_word(struct fgw_bytes word, enum fgw_log_level *out)
{
    /* go-log has levels above error; all of them are errors here. */
    static const struct {
        const char *word;
        enum fgw_log_level level;
    } WORDS[] = {
        {"error", FGW_LOG_ERROR},  {"err", FGW_LOG_ERROR},    {"fatal", FGW_LOG_ERROR},
        {"panic", FGW_LOG_ERROR},  {"dpanic", FGW_LOG_ERROR}, {"warn", FGW_LOG_WARN},
        {"warning", FGW_LOG_WARN}, {"info", FGW_LOG_INFO},    {"debug", FGW_LOG_DEBUG},
        {"trace", FGW_LOG_TRACE},
    };
    for (size_t i = 0; i < FGW_COUNT_OF(WORDS); i++) {
        if (fgw_bytes_ieq_str(word, WORDS[i].word)) {
            *out = WORDS[i].level;
            return FGW_OK;
        }
    }
    return FGW_ERR_PARSE;
}

enum fgw_err level_from_list(struct fgw_bytes list, enum fgw_log_level *out_level)
{
    struct fgw_bytes item;
    enum fgw_log_level most_verbose = FGW_LOG_ERROR;
    while (fgw_bytes_split(&list, ',', &item)) {
        struct fgw_bytes word = fgw_bytes_trim(item);
        for (size_t i = word.len; i > 0; i--) {
            if (word.ptr[i - 1] == '=' || word.ptr[i - 1] == ':') {
                word = fgw_bytes_trim(fgw_bytes_sub(word, i, SIZE_MAX));
                break;
            }
        }
        enum fgw_log_level level;
        if (level_from_word(word, &level) != FGW_OK) {
            return FGW_ERR_PARSE;
        }
        most_verbose = level > most_verbose ? level : most_verbose;
    }
    *out_level = most_verbose;
    return FGW_OK;
}

static enum fgw_err parse_secret(struct value_parser *parser, struct fgw_bytes text,
                                 const char **out)
{
    uint64_t least;
    uint64_t most;
    bounds_of(parser->setting, &least, &most);
    if (text.len < least || text.len > most) {
        return refuse(parser, "%zu characters long", text.len);
    }
    *out = fgw_arena_strdup(parser->arena, text);
    return FGW_OK;
}

static bool form_holds(const struct value_parser *parser, struct fgw_bytes text)
{
    switch (parser->setting->kind) {
    case KIND_REGION:
        /* the Go gateway's default is "EU", and what its clients sign with must stay right */
        return text_only(text, parser->from_alias ? "-ABCDEFGHIJKLMNOPQRSTUVWXYZ" : "-", 1, 32);
    case KIND_KEYSPACE:
        return text_only(text, "_", 1, 48) && text.ptr[0] >= 'a' && text.ptr[0] <= 'z';
    case KIND_NODE_ID:
        return text_is_node_id(text);
    case KIND_URL:
        return text_is_url(text);
    default:
        return text.len <= 4096;
    }
}

static bool access_key_holds(struct fgw_bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c <= ' ' || c > '~' || c == ',' || c == '/' || c == '=') {
            return false;
        }
    }
    return text.len >= 3 && text.len <= 128;
}

static enum fgw_err parse_text(struct value_parser *parser, struct fgw_bytes text, const char **out)
{
    bool holds = parser->setting->kind == KIND_ACCESS_KEY ? access_key_holds(text)
                                                          : form_holds(parser, text);
    if (!holds) {
        return refuse(parser, "not of the form allowed");
    }
    *out = fgw_arena_strdup(parser->arena, text);
    return FGW_OK;
}

enum fgw_err value_parse(struct value_parser *parser, const char *text, void *field)
{
    parser->reason[0] = '\0';
    struct fgw_bytes bytes = fgw_bytes_str(text);
    if (!setting_is_secret(parser->setting)) {
        bytes = fgw_bytes_trim(bytes);
    }
    switch (parser->setting->kind) {
    case KIND_SECRET:
        return parse_secret(parser, bytes, field);
    case KIND_SECRETS:
    case KIND_LOCATIONS:
    case KIND_DOMAINS:
        return parse_list(parser, bytes, field);
    case KIND_LISTEN:
    case KIND_LISTEN_OR_OFF:
        return parse_listen(parser, bytes, field);
    case KIND_HOSTS:
        return parse_hosts(parser, bytes, field);
    case KIND_NODES:
        return parse_nodes(parser, bytes, field);
    case KIND_REPLICATION:
        return parse_replication(parser, bytes, field);
    case KIND_ENUM:
        return parse_enum(parser, bytes, field);
    case KIND_LEVEL:
        return level_from_word(bytes, field) == FGW_OK ? FGW_OK : refuse(parser, "unknown level");
    case KIND_BOOL:
        return parse_bool(parser, bytes, field);
    case KIND_INT:
        return parse_int(parser, bytes, field);
    case KIND_SIZE:
    case KIND_RATE:
    case KIND_DURATION:
        return parse_number(parser, bytes, field);
    default:
        return parse_text(parser, bytes, field);
    }
}
