/* config_internal.h: the table of settings as data, and the parsers of values. Only for src/config.
 */
#ifndef FGW_CONFIG_CONFIG_INTERNAL_H
#define FGW_CONFIG_CONFIG_INTERNAL_H

#include "config/config.h"

enum setting_kind {
    KIND_PATH,
    KIND_TEXT,
    KIND_REGION,
    KIND_ACCESS_KEY,
    KIND_SECRET,
    KIND_KEYSPACE,
    KIND_NODE_ID,
    KIND_URL,
    KIND_SECRETS,
    KIND_LOCATIONS,
    KIND_DOMAINS,
    KIND_LISTEN,
    KIND_LISTEN_OR_OFF,
    KIND_HOSTS,
    KIND_NODES,
    KIND_REPLICATION,
    KIND_ENUM,
    KIND_LEVEL,
    KIND_BOOL,
    KIND_INT,
    KIND_SIZE,
    KIND_RATE,
    KIND_DURATION,
    KIND_COUNT
};

struct setting {
    const char *name; /* FGW_DATA */
    enum setting_kind kind;
    unsigned roles;
    const char *default_text;
    const char *allowed;
    const char *help;
    size_t offset; /* of the field in struct fgw_config */
};

enum alias_form { ALIAS_PLAIN, ALIAS_OPS_PORT, ALIAS_LOG_LEVELS };

struct alias {
    const char *name;
    enum fgw_setting_id id;
    enum alias_form form;
};

const struct setting *setting_of(enum fgw_setting_id id);
size_t alias_count(void);
const struct alias *alias_at(size_t index);
/* FGW_ names of the Go gateway that mean nothing here: no mistake, but a note. */
size_t legacy_count(void);
const char *legacy_at(size_t index);
bool setting_is_legacy(struct fgw_bytes name);
/* The default of a role; "=text" is worked out by derive.c. */
const char *setting_default(enum fgw_setting_id id, enum fgw_role role);
bool setting_is_secret(const struct setting *setting);
/* "data" of FGW_DATA; out holds FLAG_SIZE. */
enum { FLAG_SIZE = 64 };
void setting_flag(const struct setting *setting, char out[FLAG_SIZE]);
/* FGW_SETTING_COUNT when there is none. */
enum fgw_setting_id setting_by_name(struct fgw_bytes name);
enum fgw_setting_id setting_by_flag(struct fgw_bytes flag);
/* The nearest of the known names (settings, aliases), or NULL when none is near. With `flags`
 * among the flags, without dashes; *storage is then where the answer is kept. */
const char *setting_nearest(struct fgw_bytes name, bool flags, char storage[FLAG_SIZE]);

/* Parses the text of one setting into `field` (of the type of its kind). On FGW_ERR_PARSE
 * `reason` says what is wrong, without the value. */
enum { REASON_SIZE = 160 };
struct value_parser {
    struct fgw_arena *arena;
    const struct setting *setting;
    bool from_alias; /* the value came under a name of the Go gateway */
    char reason[REASON_SIZE];
};
enum fgw_err value_parse(struct value_parser *parser, const char *text, void *field) FGW_MUST_CHECK;
/* The most verbose level that a go-log list names: "a=info,b:c=debug" gives debug. */
enum fgw_err level_from_list(struct fgw_bytes list, enum fgw_log_level *out_level) FGW_MUST_CHECK;
/* Parsers of list-like kinds (lists.c); same contract. */
enum fgw_err parse_listen(struct value_parser *parser, struct fgw_bytes text,
                          struct fgw_config_addresses *out) FGW_MUST_CHECK;
enum fgw_err parse_hosts(struct value_parser *parser, struct fgw_bytes text,
                         struct fgw_config_addresses *out) FGW_MUST_CHECK;
enum fgw_err parse_list(struct value_parser *parser, struct fgw_bytes text,
                        struct fgw_config_list *out) FGW_MUST_CHECK;
enum fgw_err parse_nodes(struct value_parser *parser, struct fgw_bytes text,
                         struct fgw_config_nodes *out) FGW_MUST_CHECK;
enum fgw_err parse_replication(struct value_parser *parser, struct fgw_bytes text,
                               struct fgw_config_replication *out) FGW_MUST_CHECK;
/* Character classes and forms that several kinds share (lists.c). text_only: nothing but a-z, 0-9
 * and the bytes of `more`, least..most of them. */
bool text_is_node_id(struct fgw_bytes id);
bool text_is_url(struct fgw_bytes text);
bool text_is_host_name(struct fgw_bytes text);
bool text_only(struct fgw_bytes text, const char *more, size_t least, size_t most);
/* For parsers: notes why and returns FGW_ERR_PARSE. */
enum fgw_err refuse(struct value_parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "4GiB" in bytes, "30s" in milliseconds. */
enum fgw_err size_from_text(struct fgw_bytes text, uint64_t *out_bytes) FGW_MUST_CHECK;
enum fgw_err duration_from_text(struct fgw_bytes text, uint64_t *out_ms) FGW_MUST_CHECK;

/* One KEY=VALUE of a settings file. */
struct env_line {
    struct fgw_bytes key;
    struct fgw_bytes value;
    unsigned line;
};
/* Takes the next assignment off *rest, counting lines in *line. FGW_ERR_END at the end;
 * FGW_ERR_PARSE with a reason for a line that is none (reading may go on). */
enum fgw_err env_file_next(struct fgw_bytes *rest, unsigned *line, struct env_line *out_item,
                           const char **out_reason) FGW_MUST_CHECK;

/* Appends a whole file, also a pipe; FGW_ERR_NOT_FOUND, _TOO_LARGE (above the buffer's maximum), _IO. */
enum fgw_err config_read_file(const char *path, struct fgw_buf *out) FGW_MUST_CHECK;

/* Where one load collects. */
struct load {
    struct fgw_config_input *input;
    struct fgw_config *config;
    struct fgw_buf *errors;
    struct fgw_buf *warnings;
};
void load_error(struct load *load, const char *format, ...) __attribute__((format(printf, 2, 3)));
void load_warning(struct load *load, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Values worked out at start ("=..."), and the rules between settings. */
void derive_values(struct load *load);
void check_together(struct load *load);

#endif
