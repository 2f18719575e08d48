/* schema.c: see schema.h. */
#include "bin/schema.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/encode.h"
#include "bin/cql_settings.h"
#include "bin/schema_metrics.h"
#include "migrate/cql_port.h"

void fgw_schema_add(struct fgw_arena *arena, struct fgw_schema_keyspaces *keyspaces,
                    const char *name, const char *set)
{
    for (size_t i = 0; i < keyspaces->count; i++) {
        if (strcmp(keyspaces->items[i].name, name) == 0) {
            return;
        }
    }
    struct fgw_schema_keyspace *larger =
        fgw_arena_alloc(arena, (keyspaces->count + 1) * sizeof *larger);
    if (keyspaces->count > 0) {
        memcpy(larger, keyspaces->items, keyspaces->count * sizeof *larger);
    }
    larger[keyspaces->count++] = (struct fgw_schema_keyspace){name, set};
    keyspaces->items = larger;
}

static const struct fgw_migrate_set *embedded_set(struct fgw_arena *arena, const char *name)
{
    size_t count = 0;
    struct fgw_error error;
    struct fgw_migrate_set *set = fgw_arena_zalloc(arena, sizeof *set);
    const struct fgw_migrate_source *sources = fgw_migrate_embedded(name, &count);
    fgw_error_init(&error);
    /* the generator held the same files to the same rules when the program was built */
    FGW_CHECK(sources != NULL &&
              fgw_migrate_set_build(arena, name, sources, count, &error, set) == FGW_OK);
    return set;
}

static volatile sig_atomic_t stop_signal;
static struct sigaction before_term;
static struct sigaction before_int;

/* The first signal asks the run to stop between two steps, the second ends the process. */
static void on_stop_signal(int number)
{
    if (stop_signal != 0) {
        _exit(128 + number);
    }
    stop_signal = number;
}

void fgw_schema_stop_on_signals(void)
{
    struct sigaction action = {.sa_handler = on_stop_signal};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGTERM, &action, &before_term);
    (void)sigaction(SIGINT, &action, &before_int);
}

void fgw_schema_signals_back(void)
{
    (void)sigaction(SIGTERM, &before_term, NULL);
    (void)sigaction(SIGINT, &before_int, NULL);
}

bool fgw_schema_stop_requested(void *context)
{
    (void)context;
    return stop_signal != 0;
}

const struct fgw_migrate_report *fgw_schema_run(struct fgw_schema_run *run,
                                                const struct fgw_schema_keyspace *keyspace,
                                                fgw_schema_command *command)
{
    struct fgw_arena scratch;
    fgw_arena_init(&scratch, 0);
    struct fgw_migrate_port_options port_options = {
        .client = run->client,
        .replication = fgw_cql_replication_of(run->arena, run->config),
        .stop_requested = fgw_schema_stop_requested,
        .ddl_timeout_ms = run->options.timing.lease_ms == 0 ? 0
                                                            : run->options.timing.ddl_timeout_ms +
                                                                  run->options.timing.ddl_grace_ms,
        .quiet = run->quiet};
    struct fgw_migrate_port *port = fgw_migrate_port_new(&port_options);
    struct fgw_migrate_options options = run->options;
    options.keyspace = keyspace->name;
    options.set = embedded_set(run->arena, keyspace->set);
    options.actor = fgw_arena_printf(run->arena, "%s pid %d",
                                     run->config->node_id == NULL ? fgw_role_name(run->config->role)
                                                                  : run->config->node_id,
                                     (int)getpid());
    options.build = fgw_version();
    if (options.timing.lease_ms == 0) {
        uint32_t wait_limit_ms = options.timing.wait_limit_ms;
        options.timing = fgw_migrate_default_timing;
        if (wait_limit_ms != 0) {
            options.timing.wait_limit_ms = wait_limit_ms;
        }
    }
    struct fgw_migrate_engine *engine =
        fgw_migrate_engine_new(fgw_migrate_port_ops(port), run->arena, &scratch, &options);
    (void)command(engine);
    const struct fgw_migrate_report *report = fgw_migrate_report(engine);
    uint64_t statements_ms = 0;
    unsigned statements = fgw_migrate_port_statements(port, &statements_ms);
    if (!run->unnoted) {
        fgw_schema_metrics_note(report, statements, statements_ms);
    }
    fgw_migrate_port_free(port);
    fgw_arena_deinit(&scratch);
    return report;
}

/* -- at start-up ----------------------------------------------------------------------------------- */

static void log_findings(struct fgw_arena *arena, const struct fgw_migrate_report *report)
{
    for (size_t i = 0; i < report->finding_count; i++) {
        const struct fgw_migrate_finding *finding = &report->findings[i];
        enum fgw_log_level level = finding->severity == FGW_MIGRATE_ERROR     ? FGW_LOG_ERROR
                                   : finding->severity == FGW_MIGRATE_WARNING ? FGW_LOG_WARN
                                                                              : FGW_LOG_INFO;
        fgw_log_at(level, "migrate", "%s", fgw_migrate_finding_text(arena, report, finding));
    }
}

static const char *title_of(const struct fgw_migrate_finding *finding)
{
    return finding->title[0] != '\0' ? finding->title : fgw_migrate_code_title(finding->code);
}

/* What a person has to know first: an error, else whatever there is. */
static const struct fgw_migrate_finding *gravest(const struct fgw_migrate_report *report)
{
    const struct fgw_migrate_finding *found = NULL;
    for (size_t i = 0; i < report->finding_count; i++) {
        if (found == NULL || report->findings[i].severity > found->severity) {
            found = &report->findings[i];
        }
    }
    return found;
}

struct start {
    struct fgw_health *health;
    const char *keyspace;
};

/* Why this process is not ready, with the members of spec/migrations.md E2.9. */
static void tell_health(const struct start *start, const struct fgw_migrate_report *report,
                        const struct fgw_migrate_finding *finding)
{
    char why[400];
    bool told = finding != NULL && finding->next[0] != '\0';
    const char *title = finding == NULL ? "not as needed" : title_of(finding);
    const char *cause = finding == NULL             ? ""
                        : finding->cause[0] != '\0' ? finding->cause
                                                    : finding->diff;
    const char *next = told ? finding->next : "fgw migrate status";
    const char *holder = finding == NULL ? "" : finding->holder;
    (void)snprintf(why, sizeof why, "keyspace %s: %s%s%s; next: %s", start->keyspace, title,
                   cause[0] != '\0' ? ": " : "", cause, next);
    fgw_health_set_more(
        start->health, "migrations", why,
        json_pack("{s:s,s:s,s:I,s:I,s:s,s:s}", "keyspace", start->keyspace, "state",
                  report->have_state ? fgw_migrate_compat_name(report->compat) : "ABSENT", "have",
                  (json_int_t)(report->have_state ? report->version : 0), "need",
                  (json_int_t)report->target, "holder", holder, "next", next));
}

static void on_waiting(void *context, const struct fgw_migrate_report *report,
                       const struct fgw_migrate_finding *finding)
{
    tell_health(context, report, finding);
}

static enum fgw_migrate_exit start_one(struct fgw_schema_run *run, struct fgw_health *health,
                                       const struct fgw_schema_keyspace *keyspace, int policy)
{
    fgw_schema_command *command = policy == FGW_CONFIG_MIGRATE_AUTO  ? fgw_migrate_up
                                  : policy == FGW_CONFIG_MIGRATE_OFF ? fgw_migrate_check
                                                                     : fgw_migrate_wait;
    struct start start = {health, keyspace->name};
    run->options.create_keyspace = policy == FGW_CONFIG_MIGRATE_AUTO;
    run->options.waiting = on_waiting;
    run->options.waiting_context = &start;
    fgw_health_set(health, "migrations",
                   fgw_arena_printf(run->arena, "keyspace %s: %s", keyspace->name,
                                    policy == FGW_CONFIG_MIGRATE_AUTO
                                        ? "migrating"
                                        : "waiting for its schema; fgw db-init makes it"));
    const struct fgw_migrate_report *report = fgw_schema_run(run, keyspace, command);
    run->options.waiting = NULL;
    run->options.waiting_context = NULL;
    log_findings(run->arena, report);
    if (report->exit != FGW_MIGRATE_EXIT_OK) {
        tell_health(&start, report, gravest(report));
    }
    return report->exit;
}

enum fgw_migrate_exit fgw_schema_at_start(const struct fgw_config *config,
                                          struct fgw_cql_client *client, struct fgw_health *health)
{
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    struct fgw_schema_run run = {.config = config, .client = client, .arena = &arena};
    struct fgw_schema_keyspace shared = {config->cql_keyspace, "shared"};
    struct fgw_schema_keyspace own = {config->cql_node_keyspace, "node"};
    bool split = config->migrate == FGW_CONFIG_MIGRATE_SPLIT;
    bool has_own =
        config->role != FGW_ROLE_PROXY && own.name != NULL && strcmp(own.name, "none") != 0;
    enum fgw_migrate_exit exit =
        start_one(&run, health, &shared, split ? FGW_CONFIG_MIGRATE_WAIT : config->migrate);
    if (exit == FGW_MIGRATE_EXIT_OK && has_own) {
        exit = start_one(&run, health, &own, split ? FGW_CONFIG_MIGRATE_AUTO : config->migrate);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        fgw_health_set(health, "migrations", NULL);
    }
    fgw_arena_deinit(&arena);
    return exit;
}

static const char *own_name(const struct fgw_schema_run *run)
{
    char host[72] = "";
    if (run->config->node_id != NULL && run->config->node_id[0] != '\0') {
        return run->config->node_id;
    }
    (void)gethostname(host, sizeof host - 1);
    return fgw_arena_printf(run->arena, "%s@%s:%d", fgw_role_name(run->config->role), host,
                            (int)getpid());
}

void fgw_schema_register(const struct fgw_config *config, struct fgw_cql_client *client)
{
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    struct fgw_schema_run run = {
        .config = config, .client = client, .arena = &arena, .quiet = true, .unnoted = true};
    struct fgw_schema_keyspace shared = {config->cql_keyspace, "shared"};
    run.options.node_id = own_name(&run);
    run.options.role = fgw_role_name(config->role);
    (void)fgw_schema_run(&run, &shared, fgw_migrate_register);
    fgw_arena_deinit(&arena);
}

void fgw_schema_look(const struct fgw_config *config, struct fgw_cql_client *client)
{
    enum { WAIT_MS = 2000 };
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    struct fgw_schema_run run = {.config = config,
                                 .client = client,
                                 .arena = &arena,
                                 .quiet = true,
                                 .options.timing.wait_limit_ms = WAIT_MS};
    struct fgw_schema_keyspace keyspaces[] = {{config->cql_keyspace, "shared"},
                                              {config->cql_node_keyspace, "node"}};
    bool has_own = config->role != FGW_ROLE_PROXY && config->cql_node_keyspace != NULL &&
                   strcmp(config->cql_node_keyspace, "none") != 0;
    for (size_t i = 0; i < (has_own ? 2 : 1); i++) {
        const struct fgw_migrate_report *report =
            fgw_schema_run(&run, &keyspaces[i], fgw_migrate_verify);
        if (report->exit == FGW_MIGRATE_EXIT_DRIFT) {
            log_findings(&arena, report);
        }
    }
    fgw_arena_deinit(&arena);
}

/* -- output ---------------------------------------------------------------------------------------- */

/* Texts of a database may be anything. */
static void set_text(json_t *object, const char *name, const char *text)
{
    json_t *string = json_string(text);
    (void)json_object_set_new(object, name, string != NULL ? string : json_string("(no UTF-8)"));
}

static json_t *finding_json(const struct fgw_migrate_finding *finding)
{
    static const char *const SEVERITIES[] = {"info", "warning", "error"};
    char code[16];
    (void)snprintf(code, sizeof code, "FGW-MIG-%03d", (int)finding->code % 1000);
    json_t *json =
        json_pack("{s:s,s:s,s:s,s:i}", "code", code, "severity", SEVERITIES[finding->severity % 3],
                  "title", title_of(finding), "ql_error", finding->ql_error);
    set_text(json, "object", finding->object);
    set_text(json, "step", finding->step);
    set_text(json, "diff", finding->diff);
    set_text(json, "cause", finding->cause);
    set_text(json, "state", finding->state);
    set_text(json, "holder", finding->holder);
    set_text(json, "coordinator", finding->server);
    set_text(json, "next", finding->next);
    return json;
}

static json_t *lock_json(const struct fgw_migrate_report *report)
{
    static const char *const INTENTS[] = {"none", "running", "verify"};
    static const struct fgw_migrate_uuid FREE;
    const struct fgw_migrate_lock_row *lock = &report->lock;
    bool held = report->have_lock_row && memcmp(&lock->owner, &FREE, sizeof FREE) != 0;
    json_t *json = json_pack("{s:s,s:I,s:I,s:s}", "owner", held ? lock->owner_desc : "", "epoch",
                             (json_int_t)lock->epoch, "age_ms", (json_int_t)report->lock_age_ms,
                             "intent", INTENTS[lock->i_phase % 3]);
    return json;
}

json_t *fgw_schema_report_json(const struct fgw_migrate_report *report, const char *role)
{
    json_t *findings = json_array();
    json_t *pending = json_array();
    json_t *mirror = json_array();
    for (size_t i = 0; i < report->finding_count; i++) {
        (void)json_array_append_new(findings, finding_json(&report->findings[i]));
    }
    for (size_t i = 0; i < report->pending_count; i++) {
        (void)json_array_append_new(pending, json_string(report->pending[i]));
    }
    for (size_t i = 0; i < report->mirror_count; i++) {
        (void)json_array_append_new(mirror, json_pack("{s:I,s:b}", "version",
                                                      (json_int_t)report->mirror[i].version,
                                                      "dirty", (int)report->mirror[i].dirty));
    }
    json_t *json = json_pack(
        "{s:s,s:s,s:s,s:i,s:I,s:I,s:I,s:s,s:i,s:i,s:i,s:o,s:o,s:o,s:o}", "keyspace",
        report->keyspace, "set", report->set, "role", role, "exit_code", (int)report->exit,
        "version", (json_int_t)report->version, "target", (json_int_t)report->target, "min_compat",
        (json_int_t)report->min_compat, "state",
        report->have_state ? fgw_migrate_compat_name(report->compat) : "ABSENT", "applied",
        report->applied, "reconciled", report->reconciled, "failed", report->failed, "lock",
        lock_json(report), "pending", pending, "findings", findings, "mirror", mirror);
    if (report->catalog_hash[0] != '\0') {
        (void)json_object_set_new(json, "catalog_hash", json_string(report->catalog_hash));
    }
    return json;
}

void fgw_schema_report_text(const struct fgw_migrate_report *report, struct fgw_buf *out)
{
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    char version[24] = "none";
    if (report->have_state) {
        (void)snprintf(version, sizeof version, "%" PRId64, report->version);
    }
    if (strcmp(report->command, "unlock") == 0) { /* looks at the lock only */
        (void)fgw_buf_appendf(out, "%-28s %s", report->keyspace, report->set);
    } else {
        (void)fgw_buf_appendf(out, "%-28s %-7s version %s  target %" PRId64 "  %s",
                              report->keyspace, report->set, version, report->target,
                              report->have_state ? fgw_migrate_compat_name(report->compat)
                                                 : "ABSENT");
    }
    if (report->applied + report->reconciled + report->failed > 0) {
        (void)fgw_buf_appendf(out, "  applied %d, found done %d, failed %d", report->applied,
                              report->reconciled, report->failed);
    }
    (void)fgw_buf_append_str(out, "\n");
    for (size_t i = 0; i < report->pending_count; i++) {
        (void)fgw_buf_appendf(out, "  pending  %s\n", report->pending[i]);
    }
    if (report->catalog_hash[0] != '\0') {
        (void)fgw_buf_appendf(out, "  catalog  %s\n", report->catalog_hash);
    }
    for (size_t i = 0; i < report->finding_count; i++) {
        (void)fgw_buf_append_str(out,
                                 fgw_migrate_finding_text(&arena, report, &report->findings[i]));
    }
    fgw_arena_deinit(&arena);
}
