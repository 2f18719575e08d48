/* config.h: the settings of a process, read once at start and constant afterwards.
 *
 * Flags before environment before file (--config) before defaults. Everything is validated before
 * anything opens and all errors are reported at once, each with key, value, where it came from and
 * what is allowed. The one table is settings.def; docs/guide/settings.md is made from it. Names of
 * the Go gateway are aliases. Source: design/architecture.md section 5, spec/interface.md section 3.
 *
 * A struct fgw_config owns all it points to (fgw_config_deinit). After loading any thread may read
 * it; nothing changes it.
 */
#ifndef FGW_CONFIG_CONFIG_H
#define FGW_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/log.h"

/* Bits: a setting names the set of roles that use it. TOOL is every other verb. */
enum fgw_role {
    FGW_ROLE_SERVE = 1,
    FGW_ROLE_PROXY = 2,
    FGW_ROLE_KURI = 4,
    FGW_ROLE_DB_INIT = 8,
    FGW_ROLE_TOOL = 16
};

/* "serve", "proxy", "kuri", "db-init"; "tool". */
const char *fgw_role_name(enum fgw_role role);

/* Values of the ENUM fields, in the order of their `allowed` column. */
enum fgw_config_meta { FGW_CONFIG_META_ROCKS, FGW_CONFIG_META_CQL };
enum fgw_config_sync { FGW_CONFIG_SYNC_ALWAYS, FGW_CONFIG_SYNC_OFF };
enum fgw_config_log_format { FGW_CONFIG_LOG_TEXT, FGW_CONFIG_LOG_JSON };
enum fgw_config_migrate {
    FGW_CONFIG_MIGRATE_AUTO,
    FGW_CONFIG_MIGRATE_WAIT,
    FGW_CONFIG_MIGRATE_OFF,
    FGW_CONFIG_MIGRATE_SPLIT /* auto for the node's own keyspace, wait for the shared one */
};
enum fgw_config_consistency {
    FGW_CONFIG_CL_ONE,
    FGW_CONFIG_CL_TWO,
    FGW_CONFIG_CL_THREE,
    FGW_CONFIG_CL_QUORUM,
    FGW_CONFIG_CL_ALL,
    FGW_CONFIG_CL_LOCAL_QUORUM,
    FGW_CONFIG_CL_EACH_QUORUM,
    FGW_CONFIG_CL_LOCAL_ONE
};
enum fgw_config_node_type { FGW_CONFIG_NODE_STORAGE, FGW_CONFIG_NODE_FRONTEND };
/* An ENUM field without a value. */
enum { FGW_CONFIG_UNSET = -1 };
/* min_free_bytes when it follows the size of the disk. */
#define FGW_CONFIG_AUTO UINT64_MAX

struct fgw_config_list {
    const char *const *items;
    size_t count;
};

struct fgw_config_address {
    const char *host; /* listeners: a numeric address without brackets; hosts: a name or address */
    uint16_t port;
};
struct fgw_config_addresses {
    const struct fgw_config_address *items;
    size_t count;
};

struct fgw_config_node {
    const char *id;
    const char *url;
};
struct fgw_config_nodes {
    const struct fgw_config_node *items;
    size_t count;
};

struct fgw_config_copies {
    const char *data_centre; /* NULL with SimpleStrategy */
    unsigned copies;
};
struct fgw_config_replication {
    bool network_topology;
    const struct fgw_config_copies *items;
    size_t count; /* exactly 1 with SimpleStrategy */
};

#define FGW_CONFIG_TYPE_PATH const char *
#define FGW_CONFIG_TYPE_TEXT const char *
#define FGW_CONFIG_TYPE_REGION const char *
#define FGW_CONFIG_TYPE_ACCESS_KEY const char *
#define FGW_CONFIG_TYPE_SECRET const char *
#define FGW_CONFIG_TYPE_KEYSPACE const char *
#define FGW_CONFIG_TYPE_NODE_ID const char *
#define FGW_CONFIG_TYPE_URL const char *
#define FGW_CONFIG_TYPE_SECRETS struct fgw_config_list
#define FGW_CONFIG_TYPE_LOCATIONS struct fgw_config_list
#define FGW_CONFIG_TYPE_DOMAINS struct fgw_config_list
#define FGW_CONFIG_TYPE_LISTEN struct fgw_config_addresses
#define FGW_CONFIG_TYPE_LISTEN_OR_OFF struct fgw_config_addresses
#define FGW_CONFIG_TYPE_HOSTS struct fgw_config_addresses
#define FGW_CONFIG_TYPE_NODES struct fgw_config_nodes
#define FGW_CONFIG_TYPE_REPLICATION struct fgw_config_replication
#define FGW_CONFIG_TYPE_ENUM int
#define FGW_CONFIG_TYPE_LEVEL enum fgw_log_level
#define FGW_CONFIG_TYPE_BOOL bool
#define FGW_CONFIG_TYPE_INT unsigned
#define FGW_CONFIG_TYPE_SIZE uint64_t
#define FGW_CONFIG_TYPE_RATE uint64_t /* bytes a second */
#define FGW_CONFIG_TYPE_DURATION uint64_t

enum fgw_setting_id {
#define FGW_SETTING(name, field, kind, roles, value, allowed, help) FGW_SETTING_##name,
#define FGW_SETTING_DEFAULT(name, role, value)
#define FGW_SETTING_ALIAS(alias, name, form)
#include "config/settings.def"
#undef FGW_SETTING
#undef FGW_SETTING_DEFAULT
#undef FGW_SETTING_ALIAS
    FGW_SETTING_COUNT
};

enum fgw_config_source {
    FGW_CONFIG_FROM_DEFAULT,
    FGW_CONFIG_FROM_FILE,
    FGW_CONFIG_FROM_ENVIRONMENT,
    FGW_CONFIG_FROM_FLAG
};

struct fgw_config_value {
    const char *text; /* as given, or the default; NULL when not set. Secrets are in the clear */
    enum fgw_config_source source;
    const char
        *where; /* "default", "environment FGW_DATA", "settings.env:12 RIBS_DATA", "--data" */
};

struct fgw_config {
    enum fgw_role role;
    struct fgw_arena arena;
    struct fgw_config_value values[FGW_SETTING_COUNT];
    /* Texts that are not set are NULL, lists that are not set empty, ENUM fields -1. */
#define FGW_SETTING(name, field, kind, roles, value, allowed, help) FGW_CONFIG_TYPE_##kind field;
#define FGW_SETTING_DEFAULT(name, role, value)
#define FGW_SETTING_ALIAS(alias, name, form)
#include "config/settings.def"
#undef FGW_SETTING
#undef FGW_SETTING_DEFAULT
#undef FGW_SETTING_ALIAS
};

/* A flag of one verb that is no setting ("--json", "--admin URL"). */
struct fgw_config_option {
    const char *name; /* without the dashes */
    bool takes_value;
    const char *value; /* set by the load: the argument, or "" for a flag without one; else NULL */
    const char *help;
};

struct fgw_config_input {
    enum fgw_role role;
    int argc; /* what follows the verb */
    char *const *argv;
    char *const *envp;                 /* NULL-terminated */
    struct fgw_config_option *options; /* of the verb, may be NULL */
    size_t option_count;
    /* Arguments that are no flags go here in order; more than max is an error. */
    const char **positionals;
    size_t positional_max;
    size_t positional_count; /* set by the load */
};

/* Fills *out from all sources. FGW_ERR_CONFIG with one line a mistake in *errors (then *out is
 * empty and needs no deinit); notes that do not stop a start go, one a line, to *warnings. Pointers
 * of options and positionals stay those of argv. */
enum fgw_err fgw_config_load(struct fgw_config_input *input, struct fgw_config *out,
                             struct fgw_buf *errors, struct fgw_buf *warnings) FGW_MUST_CHECK;
void fgw_config_deinit(struct fgw_config *config);

/* The own keyspace of a node: "filecoingw_" and the id without its dashes. The id must be valid
 * (fgw_config_node_id_valid). Two ids may fold alike: whoever takes several compares the results. */
enum { FGW_CONFIG_KEYSPACE_SIZE = 49 };
void fgw_config_node_keyspace(const char *node_id, char out[FGW_CONFIG_KEYSPACE_SIZE]);
bool fgw_config_node_id_valid(const char *node_id);
/* "10GiB" as bytes; FGW_ERR_PARSE. */
enum fgw_err fgw_config_size(struct fgw_bytes text, uint64_t *out_bytes) FGW_MUST_CHECK;

/* What a table of settings shows; secrets are masked. */
const char *fgw_setting_name(enum fgw_setting_id id);
void fgw_config_print_table(const struct fgw_config *config, struct fgw_buf *out);
void fgw_config_print_json(const struct fgw_config *config, struct fgw_buf *out);
/* All settings with flag, defaults, allowed values and aliases: docs/guide/settings.md. */
void fgw_config_print_markdown(struct fgw_buf *out);
/* The settings a role uses, for `fgw help VERB`. */
void fgw_config_print_help(enum fgw_role role, struct fgw_buf *out);

#endif
