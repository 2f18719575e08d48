/* cmd_doctor.c: `fgw doctor [serve|proxy|kuri] [--json]`: looks at this machine and at what the
 * settings point at, one line a check; exit 0 only if all are good. Changes nothing. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fs.h"
#include "bin/cql_settings.h"
#include "bin/schema.h"
#include "event/fiber.h"
#include "net/holder.h"
#include "net/listener.h"

enum { DATABASE_WAIT_MS = 5000 };

struct doctor {
    enum fgw_role role;
    struct fgw_config config;
    struct fgw_arena arena;
    struct fgw_cql_config *cql;
    json_t *checks;
    bool json;
    unsigned bad;
};

static void note(struct doctor *doctor, bool good, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void note(struct doctor *doctor, bool good, const char *what, const char *format, ...)
{
    char text[1000];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    doctor->bad += !good;
    (void)json_array_append_new(doctor->checks, json_pack("{s:s,s:b,s:s}", "check", what, "good",
                                                          (int)good, "detail", text));
    if (!doctor->json) {
        (void)printf("%-5s %-22s %s\n", good ? "ok" : "BAD", what, text);
    }
}

/* -- this machine -------------------------------------------------------------------------------- */

/* Whether the process is an "fgw ROLE", by the words it was started with. */
static bool runs_role(long pid, enum fgw_role role)
{
    char path[40];
    char words[512];
    (void)snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    size_t len = fread(words, 1, sizeof words - 1, file);
    (void)fclose(file);
    words[len] = '\0';
    size_t verb = strlen(words) + 1;
    return verb < len && strcmp(words + verb, fgw_role_name(role)) == 0;
}

static bool holds_data(struct doctor *doctor, long pid)
{
    struct fgw_buf text;
    fgw_buf_init(&text, 64);
    const char *path = fgw_arena_printf(&doctor->arena, "%s/LOCK", doctor->config.data_dir);
    bool read = fgw_fs_read_file(AT_FDCWD, path, &text) == FGW_OK &&
                fgw_buf_append_byte(&text, '\0') == FGW_OK;
    bool holds = read && strtol((const char *)text.ptr, NULL, 10) == pid;
    fgw_buf_deinit(&text);
    return holds;
}

/* That the process which these settings are of runs already is no fault of theirs. */
static bool held_by_itself(struct doctor *doctor, uint16_t port, long *out_pid)
{
    return fgw_holder_pid_of_tcp_port(port, out_pid) && runs_role(*out_pid, doctor->role) &&
           (doctor->role == FGW_ROLE_PROXY || doctor->config.data_dir == NULL ||
            holds_data(doctor, *out_pid));
}

static void check_listeners(struct doctor *doctor, const char *what,
                            const struct fgw_config_addresses *addresses)
{
    for (size_t i = 0; i < addresses->count; i++) {
        struct fgw_listener *listener = NULL;
        struct fgw_error error;
        bool v6 = strchr(addresses->items[i].host, ':') != NULL;
        const char *address =
            fgw_arena_printf(&doctor->arena, v6 ? "[%s]:%u" : "%s:%u", addresses->items[i].host,
                             (unsigned)addresses->items[i].port);
        fgw_error_init(&error);
        enum fgw_err err = fgw_listener_open(address, &listener, &error);
        long pid = 0;
        if (err == FGW_ERR_IN_USE && held_by_itself(doctor, addresses->items[i].port, &pid)) {
            note(doctor, true, what, "%s: held by the fgw %s that runs already (pid %ld)", address,
                 fgw_role_name(doctor->role), pid);
        } else {
            note(doctor, err == FGW_OK, what, "%s: %s", address,
                 err == FGW_OK ? "free" : fgw_error_message(&error));
        }
        fgw_listener_close(listener);
    }
}

static void check_space(struct doctor *doctor, int dir)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    if (fgw_fs_space(dir, &free_bytes, &total_bytes) != FGW_OK) {
        return;
    }
    uint64_t reserve = doctor->config.min_free_bytes;
    if (reserve == FGW_CONFIG_AUTO) {
        reserve = total_bytes / 100 > UINT64_C(1) << 30 ? total_bytes / 100 : UINT64_C(1) << 30;
    }
    note(doctor, free_bytes > reserve, "disk",
         "%" PRIu64 " MiB of %" PRIu64 " MiB free; writes stop below %" PRIu64 " MiB",
         free_bytes >> 20, total_bytes >> 20, reserve >> 20);
}

static void check_data(struct doctor *doctor)
{
    const char *path = doctor->config.data_dir;
    struct stat status;
    if (path == NULL) {
        return;
    }
    if (stat(path, &status) != 0) {
        note(doctor, errno == ENOENT, "data directory", "%s: %s", path,
             errno == ENOENT ? "not there yet, made at the first start" : strerror(errno));
        return;
    }
    if (!S_ISDIR(status.st_mode)) {
        note(doctor, false, "data directory", "%s is not a directory", path);
        return;
    }
    bool usable = access(path, R_OK | W_OK | X_OK) == 0;
    note(doctor, usable, "data directory", "%s: owner uid %u, mode %04o, this process is uid %u%s",
         path, (unsigned)status.st_uid, (unsigned)status.st_mode & 07777U, (unsigned)geteuid(),
         usable ? "" : ": read, write and search are needed");
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0) {
        check_space(doctor, dir);
        (void)close(dir);
    }
}

static void check_clock(struct doctor *doctor)
{
    /* a clock that was never set stands before the program was written */
    bool plausible = fgw_clock_wall_ms() > INT64_C(1767225600000);
    note(doctor, plausible, "clock", "%s",
         plausible ? "set; requests may differ from it by 15 minutes"
                   : "stands before 2026: requests will be refused with RequestTimeTooSkewed");
}

/* -- the database --------------------------------------------------------------------------------- */

/* "a, b, c": what else there is, for who mistyped a name. */
static const char *other_keyspaces(struct doctor *doctor, struct fgw_cql_client *client)
{
    enum { SHOWN_MAX = 8 };
    struct fgw_cql_result *result = NULL;
    struct fgw_cql_options options = {.deadline_ms =
                                          fgw_loop_now_ms(fgw_loop_current()) + DATABASE_WAIT_MS};
    const char *names = "";
    unsigned shown = 0;
    if (fgw_cql_query(client, "SELECT keyspace_name FROM system_schema.keyspaces", FGW_CQL_READ,
                      &options, &result, NULL) != FGW_OK) {
        return "not known";
    }
    while (shown < SHOWN_MAX && fgw_cql_result_next(result)) {
        struct fgw_bytes name;
        if (fgw_cql_get_text(result, "keyspace_name", &name) == FGW_OK &&
            !fgw_bytes_starts_with(name, FGW_LIT("system"))) {
            names = fgw_arena_printf(&doctor->arena, "%s%s%.*s", names, shown == 0 ? "" : ", ",
                                     FGW_FMT(name));
            shown++;
        }
    }
    fgw_cql_result_free(result);
    return shown == 0 ? "none" : names;
}

static void note_finding(struct doctor *doctor, struct fgw_cql_client *client, const char *keyspace,
                         const struct fgw_migrate_report *report)
{
    const struct fgw_migrate_finding *first =
        report->finding_count > 0 ? &report->findings[0] : NULL;
    if (first == NULL || first->code == FGW_MIGRATE_NOTE) {
        note(doctor, false, "keyspace",
             "%s: version %" PRId64 " of %" PRId64 ", %zu migrations pending; next: fgw db-init",
             keyspace, report->version, report->target, report->pending_count);
        return;
    }
    bool missing = first->code == FGW_MIGRATE_KEYSPACE_MISSING;
    note(doctor, false, "keyspace", "%s: FGW-MIG-%03d %s%s%s%s%s; next: %s", keyspace, first->code,
         first->title != NULL && first->title[0] != '\0' ? first->title
                                                         : fgw_migrate_code_title(first->code),
         first->cause != NULL && first->cause[0] != '\0' ? ": " : "",
         first->cause == NULL ? "" : first->cause, missing ? "; there are: " : "",
         missing ? other_keyspaces(doctor, client) : "",
         first->next == NULL || first->next[0] == '\0' ? "fgw db-init" : first->next);
}

/* False when it is not as this program needs it. */
static bool check_schema(struct doctor *doctor, struct fgw_cql_client *client, const char *keyspace,
                         const char *set)
{
    struct fgw_schema_run run = {
        .config = &doctor->config, .client = client, .arena = &doctor->arena, .quiet = true};
    struct fgw_schema_keyspace target = {keyspace, set};
    run.options.timing = fgw_migrate_default_timing;
    run.options.timing.wait_limit_ms = DATABASE_WAIT_MS;
    const struct fgw_migrate_report *report = fgw_schema_run(&run, &target, fgw_migrate_status);
    if (report->exit != FGW_MIGRATE_EXIT_OK) {
        note_finding(doctor, client, keyspace, report);
        return false;
    }
    note(doctor, true, "keyspace", "%s: version %" PRId64 " of %" PRId64, keyspace, report->version,
         report->target);
    return true;
}

/* A conditional write whose condition cannot hold: refused before it is looked at where the role may
 * not write, and without effect where it may. */
static void check_rights(struct doctor *doctor, struct fgw_cql_client *client, const char *keyspace)
{
    struct fgw_cql_result *result = NULL;
    struct fgw_error error;
    struct fgw_cql_options options = {.deadline_ms =
                                          fgw_loop_now_ms(fgw_loop_current()) + DATABASE_WAIT_MS};
    const char *text = fgw_arena_printf(
        &doctor->arena, "UPDATE %s.users SET rev = 0x00 WHERE id = 'fgw doctor' IF rev = 0x00",
        keyspace);
    fgw_error_init(&error);
    enum fgw_err err = fgw_cql_query(client, text, FGW_CQL_LWT, &options, &result, &error);
    if (err == FGW_OK) {
        fgw_cql_result_free(result);
        note(doctor, true, "permissions", "%s: the role may read and write", keyspace);
        return;
    }
    note(doctor, false, "permissions", "%s: %s%s%s", keyspace,
         err == FGW_ERR_ACCESS_DENIED
             ? "the role of FGW_CQL_USER may not write: grant it SELECT and "
               "MODIFY on the keyspace; "
             : "a write could not be tried: ",
         err == FGW_ERR_ACCESS_DENIED ? "the database says: " : "", fgw_error_message(&error));
}

static void check_database_fiber(void *arg)
{
    struct doctor *doctor = arg;
    const struct fgw_config *config = &doctor->config;
    struct fgw_error error;
    fgw_error_init(&error);
    struct fgw_cql_client *client = fgw_cql_client_new(fgw_loop_current(), doctor->cql);
    enum fgw_err err = fgw_cql_client_wait_ready(
        client, fgw_loop_now_ms(fgw_loop_current()) + DATABASE_WAIT_MS, &error);
    note(doctor, err == FGW_OK, "database", "%s",
         err == FGW_OK ? "answers" : fgw_error_message(&error));
    if (err == FGW_OK) {
        if (check_schema(doctor, client, config->cql_keyspace, "shared")) {
            check_rights(doctor, client, config->cql_keyspace);
        }
        bool own = config->role != FGW_ROLE_PROXY && config->cql_node_keyspace != NULL &&
                   strcmp(config->cql_node_keyspace, "none") != 0;
        if (own) {
            (void)check_schema(doctor, client, config->cql_node_keyspace, "node");
        }
    }
    fgw_cql_client_free(client);
}

static void check_database(struct doctor *doctor)
{
    struct fgw_error error;
    fgw_error_init(&error);
    if (doctor->config.meta != FGW_CONFIG_META_CQL) {
        return;
    }
    if (fgw_cql_config_of(&doctor->config, &doctor->cql, &error) != FGW_OK) {
        note(doctor, false, "database", "%s", fgw_error_message(&error));
        return;
    }
    fgw_fiber_run_alone(check_database_fiber, doctor);
    fgw_cql_config_free(doctor->cql);
}

static bool take_role(struct fgw_command *as)
{
    static const enum fgw_role ROLES[] = {FGW_ROLE_SERVE, FGW_ROLE_PROXY, FGW_ROLE_KURI};
    as->role = FGW_ROLE_SERVE;
    if (as->argc == 0 || as->argv[0][0] == '-') {
        return true;
    }
    for (size_t i = 0; i < FGW_COUNT_OF(ROLES); i++) {
        if (strcmp(as->argv[0], fgw_role_name(ROLES[i])) == 0) {
            as->role = ROLES[i];
            as->argc--;
            as->argv++;
            return true;
        }
    }
    (void)fprintf(stderr, "fgw: error: \"%s\" is no role; allowed: serve, proxy, kuri\n",
                  as->argv[0]);
    return false;
}

int fgw_cmd_doctor(const struct fgw_command *command)
{
    struct fgw_command as = *command;
    struct doctor doctor = {0};
    struct fgw_config_option options[] = {{"json", false, NULL, "one JSON document"}};
    struct fgw_config_input input = {.options = options, .option_count = FGW_COUNT_OF(options)};
    if (!take_role(&as) || fgw_command_config(&as, &input, &doctor.config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    doctor.role = as.role;
    doctor.json = options[0].value != NULL;
    doctor.checks = json_array();
    fgw_arena_init(&doctor.arena, 0);
    check_clock(&doctor);
    check_listeners(&doctor, "S3 listener", &doctor.config.s3_listen);
    check_listeners(&doctor, "ops listener", &doctor.config.ops_listen);
    if (as.role != FGW_ROLE_PROXY) {
        check_data(&doctor);
    }
    check_database(&doctor);
    if (doctor.json) {
        json_t *all = json_pack("{s:b,s:O}", "good", doctor.bad == 0, "checks", doctor.checks);
        (void)json_dumpf(all, stdout, JSON_INDENT(2));
        (void)printf("\n");
        json_decref(all);
    }
    (void)fflush(stdout);
    json_decref(doctor.checks);
    fgw_arena_deinit(&doctor.arena);
    fgw_config_deinit(&doctor.config);
    return doctor.bad == 0 ? FGW_EXIT_OK : FGW_EXIT_INTERNAL;
}
