/* cmd_migrate.c: `fgw migrate status|plan|up|verify|repair|force|unlock` and `fgw db-init`
 * (spec/migrations.md E2.9, E2.10). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/fs.h"
#include "bin/cql_settings.h"
#include "bin/schema.h"
#include "cluster/cluster.h"
#include "event/fiber.h"

#include <fcntl.h>
#include <unistd.h>

enum option {
    OPT_KEYSPACE,
    OPT_ALL,
    OPT_JSON,
    OPT_WAIT,
    OPT_TIMEOUT,
    OPT_TO,
    OPT_PHASE,
    OPT_DRY_RUN,
    OPT_OUT_OF_ORDER,
    OPT_STRICT,
    OPT_APPLY,
    OPT_ADOPT,
    OPT_DROP_EMPTY,
    OPT_VERSION,
    OPT_REASON,
    OPT_ACCEPT_DRIFT,
    OPT_EPOCH,
    OPT_EVEN_IF_ALIVE,
    OPT_IGNORE_NODES,
    OPT_NODES,
    OPT_COUNT
};

static const struct fgw_config_option OPTIONS[OPT_COUNT] = {
    [OPT_KEYSPACE] = {"keyspace", true, NULL, "only this keyspace"},
    [OPT_ALL] = {"all", false, NULL, "all keyspaces (the default)"},
    [OPT_JSON] = {"json", false, NULL, "one JSON document"},
    [OPT_WAIT] = {"wait", true, NULL, "longest wait for the database and the lock, e.g. 5m"},
    [OPT_TIMEOUT] = {"timeout", true, NULL, "longest time of one DDL statement, e.g. 180s"},
    [OPT_TO] = {"to", true, NULL, "up: only to this version"},
    [OPT_PHASE] = {"phase", true, NULL, "up: expand (the default) or contract"},
    [OPT_DRY_RUN] = {"dry-run", false, NULL, "up: show, change nothing"},
    [OPT_OUT_OF_ORDER] = {"allow-out-of-order", false, NULL, "up: also run lower versions"},
    [OPT_STRICT] = {"strict", false, NULL, "verify: extra columns are errors"},
    [OPT_APPLY] = {"apply", false, NULL, "repair: carry the steps out"},
    [OPT_ADOPT] = {"adopt", false, NULL, "repair: take the version that the tables show"},
    [OPT_DROP_EMPTY] = {"allow-drop-empty", false, NULL,
                        "repair: an empty table of the wrong shape may be dropped"},
    [OPT_VERSION] = {"version", true, NULL, "force: the version to record"},
    [OPT_REASON] = {"reason", true, NULL, "force: why, kept in the history"},
    [OPT_ACCEPT_DRIFT] = {"accept-drift", true, NULL, "force: catalog hash printed by verify"},
    [OPT_EPOCH] = {"epoch", true, NULL, "unlock: epoch of the lock as shown by status"},
    [OPT_EVEN_IF_ALIVE] = {"even-if-alive", false, NULL, "unlock: although its holder lives"},
    [OPT_IGNORE_NODES] = {"ignore-nodes", true, NULL, "contract: nodes that may be shut out"},
    [OPT_NODES] = {"nodes", true, NULL, "db-init: node ids whose keyspaces are made too"},
};

#define BIT(option_) (1u << (option_))

enum {
    ALWAYS = BIT(OPT_KEYSPACE) | BIT(OPT_ALL) | BIT(OPT_JSON) | BIT(OPT_WAIT) | BIT(OPT_TIMEOUT),
    FOR_PLAN = BIT(OPT_TO) | BIT(OPT_PHASE) | BIT(OPT_OUT_OF_ORDER) | BIT(OPT_IGNORE_NODES),
    FOR_DB_INIT = BIT(OPT_NODES)
};

struct verb {
    const char *name;
    fgw_schema_command *command;
    unsigned options; /* besides ALWAYS */
};

static const struct verb VERBS[] = {
    {"status", fgw_migrate_status, 0},
    {"plan", fgw_migrate_plan, FOR_PLAN},
    {"up", fgw_migrate_up, FOR_PLAN | BIT(OPT_DRY_RUN)},
    {"verify", fgw_migrate_verify, BIT(OPT_STRICT)},
    {"repair", fgw_migrate_repair, BIT(OPT_APPLY) | BIT(OPT_ADOPT) | BIT(OPT_DROP_EMPTY)},
    {"force", fgw_migrate_force, BIT(OPT_VERSION) | BIT(OPT_REASON) | BIT(OPT_ACCEPT_DRIFT)},
    {"unlock", fgw_migrate_unlock, BIT(OPT_EPOCH) | BIT(OPT_EVEN_IF_ALIVE) | BIT(OPT_REASON)},
};

struct session {
    struct fgw_config config;
    struct fgw_config_option options[OPT_COUNT];
    struct fgw_arena arena;
    struct fgw_cql_config *cql;
    struct fgw_schema_keyspaces keyspaces;
    struct fgw_schema_run run;
    const struct verb *verb;
    const char *verb_name;
    bool db_init;
    uint64_t wait_ms;
    json_t *documents;
    json_t *error; /* why there are none */
    struct fgw_buf text;
    int exit_code;
};

static int usage(const char *text)
{
    (void)fprintf(stderr, "fgw: error: %s\n", text);
    return FGW_EXIT_USAGE;
}

/* "90s", "5m", "500ms" */
static bool parse_duration(const char *text, uint64_t *out_ms)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } UNITS[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    size_t digits = strspn(text, "0123456789");
    uint64_t value;
    if (fgw_bytes_to_u64(fgw_bytes(text, digits), &value) != FGW_OK || value > 1000000) {
        return false;
    }
    for (size_t i = 0; i < FGW_COUNT_OF(UNITS); i++) {
        if (strcmp(text + digits, UNITS[i].unit) == 0) {
            *out_ms = value * UNITS[i].ms;
            return true;
        }
    }
    return false;
}

/* A flag of another verb is a mistake, not something to pass over. */
static int refuse_strangers(const struct session *session)
{
    unsigned allowed = ALWAYS | (session->db_init ? FOR_DB_INIT : session->verb->options);
    for (size_t i = 0; i < OPT_COUNT; i++) {
        if (session->options[i].value != NULL && (allowed & BIT(i)) == 0) {
            (void)fprintf(stderr, "fgw: error: --%s is not for %s%s\n", session->options[i].name,
                          session->db_init ? "" : "fgw migrate ", session->verb_name);
            return FGW_EXIT_USAGE;
        }
    }
    return session->options[OPT_KEYSPACE].value != NULL && session->options[OPT_ALL].value != NULL
               ? usage("--keyspace and --all exclude each other")
               : FGW_EXIT_OK;
}

static bool take_version(const struct session *session, enum option option, int64_t *out)
{
    const char *text = session->options[option].value;
    uint64_t value = 0;
    if (text == NULL) {
        return true;
    }
    if (fgw_bytes_to_u64(fgw_bytes_str(text), &value) != FGW_OK || value > INT64_MAX) {
        return false;
    }
    *out = (int64_t)value;
    return true;
}

static int take_options(struct session *session)
{
    struct fgw_migrate_options *options = &session->run.options;
    uint64_t ddl_ms = 0;
    const char *phase = session->options[OPT_PHASE].value;
    session->wait_ms = session->db_init ? 600000 : 15000;
    const char *wait = session->options[OPT_WAIT].value;
    const char *timeout = session->options[OPT_TIMEOUT].value;
    if ((wait != NULL && !parse_duration(wait, &session->wait_ms)) ||
        (timeout != NULL && !parse_duration(timeout, &ddl_ms))) {
        return usage("--wait and --timeout take a duration such as 90s or 5m");
    }
    if (!take_version(session, OPT_TO, &options->to_version) ||
        !take_version(session, OPT_VERSION, &options->version) ||
        !take_version(session, OPT_EPOCH, &options->epoch)) {
        return usage("--to, --version and --epoch take a whole number");
    }
    if (phase != NULL && strcmp(phase, "expand") != 0 && strcmp(phase, "contract") != 0) {
        return usage("--phase takes expand or contract");
    }
    options->contract = phase != NULL && strcmp(phase, "contract") == 0;
    options->dry_run = session->options[OPT_DRY_RUN].value != NULL;
    options->allow_out_of_order = session->options[OPT_OUT_OF_ORDER].value != NULL;
    options->strict = session->options[OPT_STRICT].value != NULL;
    options->apply = session->options[OPT_APPLY].value != NULL;
    options->adopt = session->options[OPT_ADOPT].value != NULL;
    options->allow_drop_empty = session->options[OPT_DROP_EMPTY].value != NULL;
    options->even_if_alive = session->options[OPT_EVEN_IF_ALIVE].value != NULL;
    options->reason = session->options[OPT_REASON].value;
    options->accept_drift = session->options[OPT_ACCEPT_DRIFT].value;
    options->ignore_nodes = session->options[OPT_IGNORE_NODES].value;
    options->create_keyspace = session->db_init;
    if (wait != NULL || session->db_init) {
        options->timing.wait_limit_ms = (uint32_t)session->wait_ms;
    }
    if (ddl_ms != 0) {
        uint32_t wait_limit_ms = options->timing.wait_limit_ms;
        options->timing = fgw_migrate_default_timing;
        options->timing.ddl_timeout_ms = (uint32_t)ddl_ms;
        if (wait_limit_ms != 0) {
            options->timing.wait_limit_ms = wait_limit_ms;
        }
    }
    return FGW_EXIT_OK;
}

/* -- which keyspaces -------------------------------------------------------------------------------- */

/* Every keyspace of the family that the database has. */
static void find_keyspaces(struct session *session)
{
    struct fgw_cql_result *result = NULL;
    struct fgw_error error;
    fgw_error_init(&error);
    if (fgw_cql_query(session->run.client, "SELECT keyspace_name FROM system_schema.keyspaces",
                      FGW_CQL_READ, NULL, &result, &error) != FGW_OK) {
        return; /* the engine says what is wrong with the database */
    }
    while (fgw_cql_result_next(result)) {
        struct fgw_bytes name;
        if (fgw_cql_get_text(result, "keyspace_name", &name) == FGW_OK &&
            fgw_bytes_starts_with(name, FGW_LIT("filecoingw_")) &&
            !fgw_bytes_eq_str(name, session->config.cql_keyspace) &&
            !fgw_bytes_eq_str(name, "filecoingw_s3")) {
            fgw_schema_add(&session->arena, &session->keyspaces,
                           fgw_arena_strdup(&session->arena, name), "node");
        }
    }
    fgw_cql_result_free(result);
}

static int add_nodes(struct session *session)
{
    struct fgw_bytes rest = fgw_bytes_str(session->options[OPT_NODES].value);
    struct fgw_bytes id;
    if (session->options[OPT_NODES].value == NULL) {
        return FGW_EXIT_OK;
    }
    while (fgw_bytes_split(&rest, ',', &id)) {
        char *text = fgw_arena_strdup(&session->arena, fgw_bytes_trim(id));
        char keyspace[FGW_CONFIG_KEYSPACE_SIZE];
        if (!fgw_config_node_id_valid(text)) {
            return usage(fgw_arena_printf(
                &session->arena, "--nodes: \"%s\" is no node id (1 to 32 of a-z 0-9 -)", text));
        }
        fgw_config_node_keyspace(text, keyspace);
        for (size_t i = 0; i < session->keyspaces.count; i++) {
            if (strcmp(session->keyspaces.items[i].name, keyspace) == 0) {
                return usage(fgw_arena_printf(&session->arena,
                                              "--nodes: %s folds to keyspace %s, which is taken",
                                              text, keyspace));
            }
        }
        fgw_schema_add(&session->arena, &session->keyspaces,
                       fgw_arena_strdup(&session->arena, fgw_bytes_str(keyspace)), "node");
    }
    return FGW_EXIT_OK;
}

static int choose_keyspaces(struct session *session)
{
    const struct fgw_config *config = &session->config;
    const char *only = session->options[OPT_KEYSPACE].value;
    if (only != NULL) {
        bool shared = strcmp(only, config->cql_keyspace) == 0;
        fgw_schema_add(&session->arena, &session->keyspaces, only, shared ? "shared" : "node");
        return FGW_EXIT_OK;
    }
    fgw_schema_add(&session->arena, &session->keyspaces, config->cql_keyspace, "shared");
    if (session->db_init) {
        return add_nodes(session);
    }
    bool named = config->values[FGW_SETTING_CQL_NODE_KEYSPACE].source != FGW_CONFIG_FROM_DEFAULT;
    if (named && strcmp(config->cql_node_keyspace, "none") != 0) {
        if (strcmp(config->cql_node_keyspace, config->cql_keyspace) == 0) {
            return usage("FGW_CQL_KEYSPACE and FGW_CQL_NODE_KEYSPACE name one keyspace; a keyspace "
                         "belongs to one set of tables");
        }
        fgw_schema_add(&session->arena, &session->keyspaces, config->cql_node_keyspace, "node");
    }
    find_keyspaces(session);
    return FGW_EXIT_OK;
}

/* -- running ---------------------------------------------------------------------------------------- */

/* In slices: who is asked to stop does so soon. */
static enum fgw_err wait_ready(struct session *session, uint64_t limit, struct fgw_error *error)
{
    enum { SLICE_MS = 300 };
    for (;;) {
        uint64_t until = fgw_loop_now_ms(fgw_loop_current()) + SLICE_MS;
        until = until < limit ? until : limit;
        enum fgw_err err = fgw_cql_client_wait_ready(session->run.client, until, error);
        if (err != FGW_ERR_TIMEOUT || until == limit || fgw_schema_stop_requested(NULL)) {
            return err;
        }
    }
}

/* A fresh Cassandra refuses its first role for some 100 ms after it answers. */
static enum fgw_err connect_database(struct session *session, struct fgw_error *error)
{
    struct fgw_loop *loop = fgw_loop_current();
    uint64_t limit = fgw_loop_now_ms(loop) + session->wait_ms;
    uint64_t patience = fgw_loop_now_ms(loop) + 5000;
    struct fgw_error denied;
    enum fgw_err err = FGW_OK;
    do {
        bool again = err == FGW_ERR_ACCESS_DENIED;
        err = wait_ready(session, limit, error);
        if (again && err != FGW_OK && err != FGW_ERR_ACCESS_DENIED) {
            *error = denied; /* out of time: the refusal is what matters */
            return FGW_ERR_ACCESS_DENIED;
        }
        if (err != FGW_ERR_ACCESS_DENIED || fgw_loop_now_ms(loop) >= patience) {
            return err;
        }
        denied = *error;
        fgw_fiber_sleep_ms(300);
        fgw_cql_client_free(session->run.client);
        session->run.client = fgw_cql_client_new(loop, session->cql);
    } while (true);
}

static void cannot_connect(struct session *session, enum fgw_err err, const struct fgw_error *error)
{
    bool settings = err == FGW_ERR_CONFIG || err == FGW_ERR_ACCESS_DENIED;
    const char *next = settings ? "correct FGW_CQL_HOSTS, FGW_CQL_USER and FGW_CQL_PASSWORD; fgw "
                                  "doctor looks at each of them"
                                : "fgw doctor; then the same command again";
    const char *code = err == FGW_ERR_ACCESS_DENIED ? "FGW-MIG-011" : "FGW-MIG-012";
    const char *title = err == FGW_ERR_ACCESS_DENIED ? "no permission" : "database does not answer";
    session->exit_code = settings ? FGW_EXIT_USAGE : FGW_EXIT_DB_UNREACHABLE;
    session->error = json_pack("{s:s,s:s,s:s,s:s}", "code", code, "title", title, "cause",
                               fgw_error_message(error), "next", next);
    (void)fprintf(stderr, "%s %s\n  keyspace  %s\n  cause     %s\n  next      %s\n", code, title,
                  session->options[OPT_KEYSPACE].value != NULL
                      ? session->options[OPT_KEYSPACE].value
                      : session->config.cql_keyspace,
                  fgw_error_message(error), next);
}

/* Who makes the shared keyspace gives it its identity; one that has buckets already gets it from the
 * server whose data they describe. */
static enum fgw_err identify(struct session *session, struct fgw_error *error)
{
    uint8_t id[FGW_CLUSTER_ID_SIZE];
    struct fgw_identify how = {.make = true};
    enum fgw_err err =
        fgw_cluster_identify(session->run.client, session->config.cql_keyspace, &how, id, error);
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

static void run_session(void *arg)
{
    struct session *session = arg;
    struct fgw_error error;
    enum fgw_migrate_exit worst = FGW_MIGRATE_EXIT_OK;
    fgw_error_init(&error);
    session->run.client = fgw_cql_client_new(fgw_loop_current(), session->cql);
    enum fgw_err err = connect_database(session, &error);
    if (err == FGW_ERR_TIMEOUT && fgw_schema_stop_requested(NULL)) {
        (void)fprintf(stderr, "asked to stop while waiting for the database: %s\n",
                      fgw_error_message(&error));
        session->exit_code = (int)FGW_MIGRATE_EXIT_PENDING;
    } else if (err != FGW_OK) {
        cannot_connect(session, err, &error);
    } else {
        session->exit_code = choose_keyspaces(session);
    }
    for (size_t i = 0; session->exit_code == FGW_EXIT_OK && i < session->keyspaces.count; i++) {
        if (fgw_schema_stop_requested(NULL)) {
            worst = fgw_migrate_worse(worst, FGW_MIGRATE_EXIT_PENDING);
            break;
        }
        const struct fgw_migrate_report *report =
            fgw_schema_run(&session->run, &session->keyspaces.items[i], session->verb->command);
        worst = fgw_migrate_worse(worst, report->exit);
        (void)json_array_append_new(
            session->documents,
            fgw_schema_report_json(report, fgw_role_name(session->config.role)));
        fgw_schema_report_text(report, &session->text);
    }
    if (session->exit_code == FGW_EXIT_OK) {
        session->exit_code = (int)worst;
    }
    if (session->db_init && session->exit_code == FGW_EXIT_OK) {
        err = identify(session, &error);
        if (err != FGW_OK) {
            cannot_connect(session, err, &error);
        }
    }
    fgw_cql_client_free(session->run.client);
}

static void print_result(struct session *session)
{
    if (session->options[OPT_JSON].value != NULL) {
        json_t *all =
            json_pack("{s:i,s:s,s:i,s:O}", "schema_version", 1, "command", session->verb_name,
                      "exit_code", session->exit_code, "keyspaces", session->documents);
        if (session->error != NULL) {
            (void)json_object_set(all, "error", session->error);
        }
        (void)json_dumpf(all, stdout, JSON_INDENT(2));
        (void)printf("\n");
        json_decref(all);
    } else {
        (void)printf("%.*s", FGW_FMT(fgw_buf_bytes(&session->text)));
    }
    (void)fflush(stdout);
}

/* The document of a status without keyspaces, and the lines of FORMAT as an object. */
static void print_embedded_json(const struct session *session, struct fgw_bytes format)
{
    struct fgw_bytes line;
    json_t *items = json_object();
    while (fgw_bytes_split(&format, '\n', &line)) {
        struct fgw_bytes name;
        bool named = fgw_bytes_split(&line, ' ', &name) && name.len > 0 && line.len > 0;
        char *key = fgw_xstrdup_bytes(name);
        if (named) {
            (void)json_object_set_new(items, key, json_stringn((const char *)line.ptr, line.len));
        }
        fgw_xfree(key);
    }
    json_t *all = json_pack("{s:i,s:s,s:i,s:[],s:s,s:o}", "schema_version", 1, "command", "status",
                            "exit_code", FGW_EXIT_OK, "keyspaces", "data", session->config.data_dir,
                            "format", items);
    (void)json_dumpf(all, stdout, JSON_INDENT(2));
    (void)printf("\n");
    json_decref(all);
}

/* The embedded form has no DDL: its version is that of the directory's format. */
static int embedded_status(const struct session *session)
{
    struct fgw_buf text;
    int dir = open(session->config.data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (strcmp(session->verb_name, "status") != 0) {
        return usage("FGW_CQL_HOSTS is not set: the embedded form needs no migrations");
    }
    fgw_buf_init(&text, 65536);
    enum fgw_err err = dir < 0 ? fgw_err_from_errno(errno) : fgw_fs_read_file(dir, "FORMAT", &text);
    if (err == FGW_OK && session->options[OPT_JSON].value != NULL) {
        print_embedded_json(session, fgw_buf_bytes(&text));
    } else if (err == FGW_OK) {
        (void)printf("%s: embedded metadata, no migrations\n%.*s", session->config.data_dir,
                     FGW_FMT(fgw_buf_bytes(&text)));
    } else {
        (void)fprintf(stderr, "fgw: error: %s/FORMAT: %s; set FGW_CQL_HOSTS for a database\n",
                      session->config.data_dir, fgw_err_text(err));
    }
    if (dir >= 0) {
        (void)close(dir);
    }
    fgw_buf_deinit(&text);
    return err == FGW_OK ? FGW_EXIT_OK : FGW_EXIT_USAGE;
}

static int run_with_database(struct session *session)
{
    struct fgw_error error;
    fgw_error_init(&error);
    int exit_code = refuse_strangers(session);
    if (exit_code == FGW_EXIT_OK) {
        exit_code = take_options(session);
    }
    if (exit_code != FGW_EXIT_OK) {
        return exit_code;
    }
    if (fgw_cql_config_of(&session->config, &session->cql, &error) != FGW_OK) {
        return usage(fgw_error_message(&error));
    }
    session->documents = json_array();
    fgw_buf_init(&session->text, 0);
    session->run.config = &session->config;
    session->run.arena = &session->arena;
    session->run.quiet = !session->db_init && session->verb->command != fgw_migrate_up;
    bool chosen = session->config.values[FGW_SETTING_LOG_LEVEL].source != FGW_CONFIG_FROM_DEFAULT;
    if (session->run.quiet && !chosen) { /* the report is what was asked for */
        fgw_log_configure(FGW_LOG_WARN, session->config.log_format == FGW_CONFIG_LOG_JSON);
    }
    fgw_schema_stop_on_signals();
    fgw_fiber_run_alone(run_session, session);
    print_result(session);
    json_decref(session->documents);
    json_decref(session->error);
    fgw_buf_deinit(&session->text);
    fgw_cql_config_free(session->cql);
    return session->exit_code;
}

static int run_verb(const struct fgw_command *command, bool db_init)
{
    struct session session = {.db_init = db_init, .verb_name = "db-init"};
    const char *words[1] = {NULL};
    memcpy(session.options, OPTIONS, sizeof OPTIONS);
    struct fgw_config_input input = {.options = session.options,
                                     .option_count = OPT_COUNT,
                                     .positionals = words,
                                     .positional_max = db_init ? 0 : 1};
    if (fgw_command_config(command, &input, &session.config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    session.verb = &VERBS[2]; /* up */
    if (!db_init) {
        session.verb = NULL;
        session.verb_name = words[0] == NULL ? "" : words[0];
        for (size_t i = 0; i < FGW_COUNT_OF(VERBS); i++) {
            if (strcmp(VERBS[i].name, session.verb_name) == 0) {
                session.verb = &VERBS[i];
            }
        }
    }
    fgw_arena_init(&session.arena, 0);
    int exit_code;
    if (session.verb == NULL) {
        exit_code = usage("usage: fgw migrate status|plan|up|verify|repair|force|unlock [flags]");
    } else if (session.config.cql_hosts.count == 0 && !db_init) {
        exit_code = embedded_status(&session);
    } else if (session.config.cql_hosts.count == 0) {
        exit_code = usage("FGW_CQL_HOSTS is not set; db-init needs the database's contact points");
    } else {
        exit_code = run_with_database(&session);
    }
    fgw_arena_deinit(&session.arena);
    fgw_config_deinit(&session.config);
    return exit_code;
}

int fgw_cmd_migrate(const struct fgw_command *command)
{
    return run_verb(command, false);
}

int fgw_cmd_db_init(const struct fgw_command *command)
{
    return run_verb(command, true);
}
