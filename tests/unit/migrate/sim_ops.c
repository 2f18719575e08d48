/* sim_ops.c: struct fgw_migrate_ops over the simulated database; see sim.h. */
#include <stdio.h>

#include "base/check.h"
#include "migrate/migrate_internal.h"
#include "sim.h"

enum { CLIENT_TIMEOUT_US = 12000000, DDL_TIMEOUT_US = 180000000 };

static struct sim_proc *proc_of(void *context)
{
    return context;
}

/* -- time, chance, tasks ------------------------------------------------------------------- */

static uint64_t now_boot_ms(void *context)
{
    struct sim_proc *proc = proc_of(context);
    double us = (double)proc->sim->now_us * proc->clock_rate;
    return (uint64_t)(us / 1000.0) + (proc->jumped ? proc->clock_jump_us / 1000 : 0);
}

static int64_t now_wall_ms(void *context)
{
    struct sim_proc *proc = proc_of(context);
    return (int64_t)(proc->sim->now_us / 1000) + INT64_C(1800000000000) + proc->wall_offset_ms;
}

static void sleep_ms(void *context, uint32_t ms)
{
    struct sim_proc *proc = proc_of(context);
    sim_sleep_us(proc, (uint64_t)((double)ms * 1000.0 / proc->clock_rate) + 1);
    sim_site(proc);
}

static void random_bytes(void *context, void *out, size_t len)
{
    uint8_t *bytes = out;
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (uint8_t)sim_random(proc_of(context)->sim);
    }
}

static bool stop_requested(void *context)
{
    return proc_of(context)->stop;
}

static void start_task(void *context, void (*task)(void *), void *argument)
{
    struct sim_proc *proc = proc_of(context);
    proc->side = task;
    proc->side_argument = argument;
    sim_start_side(proc);
}

static void join_task(void *context)
{
    struct sim_proc *proc = proc_of(context);
    while (!proc->side_over) {
        sim_sleep_us(proc, 1000);
        sim_if_dead(proc);
    }
}

static void guard(void *context)
{
    struct sim_proc *proc = proc_of(context);
    while (proc->guarded) {
        sim_sleep_us(proc, 1000);
        sim_if_dead(proc);
    }
    proc->guarded = true;
}

static void unguard(void *context)
{
    proc_of(context)->guarded = false;
}

static void point(void *context, enum fgw_migrate_point at)
{
    struct sim_proc *proc = proc_of(context);
    proc->points[at]++;
    if (proc->kill_point == (int)at) {
        proc->kill_at = proc->sites;
    }
    sim_site(proc);
}

static void log_line(void *context, enum fgw_migrate_log_level level, const char *line)
{
    struct sim_proc *proc = proc_of(context);
    (void)level;
    proc->sim->log_lines++;
    if (strncmp(line, "ks: ", 4) != 0) {
        sim_fail(proc->sim, "a log line without its keyspace: %s", line);
    }
    if (proc->sim->verbose) {
        (void)fprintf(stderr, "%9.3f %-8s %s\n", (double)proc->sim->now_us / 1e6, proc->name, line);
    }
}

/* -- requests ------------------------------------------------------------------------------ */

static struct fgw_migrate_answer plain(enum fgw_migrate_answer_class class, int ql_error,
                                       const char *text)
{
    struct fgw_migrate_answer answer = {
        .class = class, .ql_error = ql_error, .server = "10.0.0.5:9042"};
    (void)snprintf(answer.text, sizeof answer.text, "%s", text);
    return answer;
}

static bool within(const struct sim *sim, uint64_t from, uint64_t to)
{
    return sim->now_us >= from && sim->now_us < to;
}

static bool chance(struct sim *sim, int per_mille)
{
    return per_mille > 0 && sim_below(sim, 1000) < (uint64_t)per_mille;
}

static void travel(struct sim_proc *proc)
{
    sim_sleep_us(proc, 100 + sim_below(proc->sim, 3000));
}

static bool cut_off(struct sim_proc *proc, bool heartbeat)
{
    bool cut =
        within(proc->sim, proc->cut_from_us, proc->cut_to_us) || (heartbeat && proc->heartbeat_cut);
    if (cut) {
        sim_sleep_us(proc, 2000000);
        sim_site(proc);
    }
    return cut;
}

/* Reads: reach the database at one instant; the caller reads then. False: no answer. */
static bool begin_read(struct sim_proc *proc, bool heartbeat, struct fgw_migrate_answer *out_answer)
{
    sim_site(proc);
    if (cut_off(proc, heartbeat)) {
        *out_answer = plain(FGW_MIGRATE_UNREACHABLE, 0, "no connection");
        return false;
    }
    travel(proc);
    if (chance(proc->sim, proc->sim->lose_answer)) {
        sim_sleep_us(proc, CLIENT_TIMEOUT_US);
        sim_site(proc);
        *out_answer = plain(FGW_MIGRATE_UNKNOWN, 0, "timed out");
        return false;
    }
    return true;
}

static struct fgw_migrate_answer end_read(struct sim_proc *proc, struct fgw_migrate_answer answer)
{
    if (within(proc->sim, proc->deaf_from_us, proc->deaf_to_us)) {
        sim_sleep_us(proc, CLIENT_TIMEOUT_US);
        answer = plain(FGW_MIGRATE_UNKNOWN, 0, "timed out");
    } else {
        travel(proc);
    }
    sim_site(proc);
    return answer;
}

static void apply_later(struct sim *sim, const struct sim_effect *effect, uint64_t at_us)
{
    if (sim->late_count == SIM_LATE_MAX) {
        return;
    }
    struct sim_effect *copy = fgw_xmalloc(sizeof *copy);
    *copy = *effect;
    if (effect->text != NULL) {
        copy->text = fgw_arena_strdup(&sim->arena, fgw_bytes_str(effect->text));
    }
    sim->late[sim->late_count].at_us = at_us;
    sim->late[sim->late_count++].effect = copy;
}

static struct fgw_migrate_answer timed_out(struct sim_proc *proc, uint64_t us)
{
    sim_sleep_us(proc, us);
    sim_site(proc);
    return plain(FGW_MIGRATE_UNKNOWN, 0, "timed out");
}

/* A statement leaves only a process that holds the lease, but for the one that was already checked
 * when the process was stopped. Control tables are made without a lock. */
static void check_holder(struct sim_proc *proc, const char *text)
{
    struct sim *sim = proc->sim;
    bool control = strstr(text, "fgw_schema_") != NULL || strstr(text, "schema_migrations") != NULL;
    bool excused = control || sim->tampered || proc->clock_rate < 0.7;
    if (excused || sim->holder == proc->index) {
        return;
    }
    bool stopped = proc->pause_us > 0 && proc->pause_at >= 0 && proc->sites > proc->pause_at;
    for (int i = 0; i < sim->proc_count; i++) {
        stopped = stopped || sim->procs[i]->options.even_if_alive; /* fenced from outside */
    }
    if (!stopped || ++proc->ddl_strayed > 1) {
        sim_fail(sim, "%s sends without the lease: %s", proc->name, text);
    }
}

/* Writes: site, travel, apply, travel, site; with the faults of the run. */
static struct fgw_migrate_answer submit(struct sim_proc *proc, bool heartbeat,
                                        struct sim_effect *effect, bool *out_applied)
{
    struct sim *sim = proc->sim;
    bool ddl = effect->kind == SIM_DDL;
    effect->proc = proc->index;
    *out_applied = false;
    sim_site(proc);
    if (cut_off(proc, heartbeat)) {
        return plain(FGW_MIGRATE_UNREACHABLE, 0, "no connection");
    }
    proc->writes++;
    if (ddl) {
        proc->ddl_sent++;
        check_holder(proc, effect->text);
    }
    travel(proc);
    if (chance(sim, sim->refuse)) {
        sim_site(proc);
        return plain(FGW_MIGRATE_NOT_APPLIED, 0, "overloaded");
    }
    if (chance(sim, sim->lose_request)) {
        return timed_out(proc, CLIENT_TIMEOUT_US);
    }
    if (chance(sim, ddl ? sim->ddl_late : sim->late_effect)) {
        uint64_t most_us = ddl ? UINT64_C(170000000) : UINT64_C(55000000);
        uint64_t delay_us = ddl && sim->ddl_late_ms > 0 ? (uint64_t)sim->ddl_late_ms * 1000
                                                        : sim_below(sim, most_us);
        apply_later(sim, effect, sim->now_us + delay_us);
        uint64_t wait_us = ddl && chance(sim, 500) ? 1000 : CLIENT_TIMEOUT_US;
        sim_sleep_us(proc, wait_us);
        sim_site(proc);
        return plain(FGW_MIGRATE_UNKNOWN, -300, "Execution Error: deadline (ql error -300)");
    }
    if (ddl) {
        sim_sleep_us(proc, sim_below(sim, (uint64_t)sim->ddl_ms * 1000 + 1));
    }
    struct fgw_migrate_answer answer = sim_apply(sim, effect, out_applied);
    bool deaf = within(sim, proc->deaf_from_us, proc->deaf_to_us);
    if (deaf || chance(sim, ddl ? sim->ddl_lose_answer : sim->lose_answer)) {
        *out_applied = false;
        return timed_out(proc, ddl ? DDL_TIMEOUT_US : CLIENT_TIMEOUT_US);
    }
    travel(proc);
    sim_site(proc);
    if (chance(sim, ddl ? sim->ddl_300 : sim->answer_300)) {
        *out_applied = false; /* yugabyte-db #2542, #29108: applied, and told otherwise */
        return chance(sim, 500)
                   ? answer.class == FGW_MIGRATE_OK && !ddl
                         ? answer
                         : plain(FGW_MIGRATE_UNKNOWN, -300, "(ql error -300)")
                   : plain(FGW_MIGRATE_UNKNOWN, -300, "Duplicate request (ql error -300)");
    }
    return answer;
}

/* -- the database -------------------------------------------------------------------------- */

static struct fgw_migrate_answer keyspace_exists(void *context, const char *keyspace,
                                                 bool *out_exists)
{
    struct sim_proc *proc = proc_of(context);
    struct fgw_migrate_answer answer;
    (void)keyspace;
    if (!begin_read(proc, false, &answer)) {
        return answer;
    }
    *out_exists = proc->sim->db.exists;
    return end_read(proc, plain(FGW_MIGRATE_OK, 0, ""));
}

static struct fgw_migrate_answer keyspace_create(void *context, const char *keyspace)
{
    (void)keyspace;
    bool applied;
    struct sim_effect effect = {.kind = SIM_KEYSPACE};
    return submit(proc_of(context), false, &effect, &applied);
}

static struct fgw_migrate_answer send_text(void *context, const char *keyspace, const char *text)
{
    (void)keyspace;
    bool applied;
    struct sim_effect effect = {.kind = SIM_DDL, .text = text};
    return submit(proc_of(context), false, &effect, &applied);
}

static struct fgw_migrate_answer missing_keyspace(void)
{
    return plain(FGW_MIGRATE_NOT_FOUND, -308, "Keyspace Not Found (ql error -308)");
}

/* Unfiltered reads may be stale on every server (system_query_cache.cc). */
static struct fgw_migrate_answer list_tables(void *context, const char *keyspace,
                                             struct fgw_arena *arena, const char ***out_names,
                                             size_t *out_count)
{
    struct sim_proc *proc = proc_of(context);
    struct fgw_migrate_answer answer;
    (void)keyspace;
    if (!begin_read(proc, false, &answer)) {
        return answer;
    }
    if (!proc->sim->db.exists) {
        return end_read(proc, missing_keyspace());
    }
    *out_names = fgw_arena_alloc(arena, SIM_TABLES_MAX * sizeof(**out_names));
    *out_count = 0;
    for (int i = 0; i < proc->sim->db.table_count; i++) {
        struct sim_table *table = &proc->sim->db.tables[i];
        if (table->shape != NULL && table->shape->table != NULL) {
            (*out_names)[(*out_count)++] = fgw_arena_strdup(arena, fgw_bytes_str(table->name));
        }
    }
    return end_read(proc, plain(FGW_MIGRATE_OK, 0, ""));
}

static const struct sim_shape *shape_seen(struct sim *sim, const struct sim_table *table,
                                          unsigned coordinator)
{
    uint64_t stale_us =
        sim->now_us < sim->stale_until_us ? (uint64_t)sim->stale_ms[coordinator % 2] * 1000 : 0;
    uint64_t at_us = sim->now_us > stale_us ? sim->now_us - stale_us : 0;
    const struct sim_shape *shape = table->shape;
    while (shape != NULL && shape->at_us > at_us) {
        shape = shape->older;
    }
    return shape;
}

static struct fgw_migrate_answer read_table(void *context, const char *keyspace, const char *name,
                                            unsigned coordinator, struct fgw_arena *arena,
                                            struct fgw_migrate_table **out_table)
{
    struct sim_proc *proc = proc_of(context);
    struct fgw_migrate_answer answer;
    (void)keyspace;
    if (!begin_read(proc, false, &answer)) {
        return answer;
    }
    struct sim_table *table = sim_table(proc->sim, name);
    *out_table = NULL;
    if (table != NULL) {
        const struct sim_shape *shape = shape_seen(proc->sim, table, coordinator);
        if (shape != NULL && shape->table != NULL) {
            *out_table = fgw_migrate_table_copy(arena, shape->table);
        }
        proc->looked_us[table - proc->sim->db.tables] = proc->sim->now_us;
    }
    return end_read(proc, plain(FGW_MIGRATE_OK, 0, ""));
}

static struct fgw_migrate_answer probe(void *context, const char *keyspace,
                                       const struct fgw_migrate_table *want, bool *out_rows)
{
    struct sim_proc *proc = proc_of(context);
    struct fgw_migrate_answer answer;
    (void)keyspace;
    if (!begin_read(proc, false, &answer)) {
        return answer;
    }
    struct sim_table *table = sim_table(proc->sim, want->name);
    const struct fgw_migrate_table *have = sim_shape(proc->sim, want->name);
    if (have == NULL) {
        return end_read(proc,
                        plain(FGW_MIGRATE_NOT_FOUND, -301, "Object Not Found (ql error -301)"));
    }
    if (proc->sim->now_us < table->readable_us) {
        return end_read(proc, plain(FGW_MIGRATE_UNKNOWN, -300,
                                    "schema version mismatch on tablet 7 (ql error -300)"));
    }
    bool control_denied = proc->sim->deny_control && fgw_migrate_is_control(want->name);
    if (control_denied) {
        return end_read(proc, plain(FGW_MIGRATE_AUTH, -4, "Unauthorized (ql error -4)"));
    }
    *out_rows = table->row_count > 0 ||
                (strcmp(want->name, "schema_migrations") == 0 && proc->sim->db.mirror_count > 0);
    return end_read(proc, plain(FGW_MIGRATE_OK, 0, ""));
}

/* -- control rows -------------------------------------------------------------------------- */

static bool begin_control(struct sim_proc *proc, bool heartbeat, const char *table,
                          struct fgw_migrate_answer *out_answer)
{
    if (!begin_read(proc, heartbeat, out_answer)) {
        return false;
    }
    if (proc->sim->deny_control) {
        *out_answer = end_read(proc, plain(FGW_MIGRATE_AUTH, -4, "Unauthorized (ql error -4)"));
        return false;
    }
    if (!sim_control_usable(proc->sim, table)) {
        *out_answer =
            end_read(proc, plain(FGW_MIGRATE_NOT_FOUND, -301, "Object Not Found (ql error -301)"));
        return false;
    }
    return true;
}

static struct fgw_migrate_answer lock_read(void *context, enum fgw_migrate_lane lane,
                                           const char *keyspace,
                                           struct fgw_migrate_lock_row *out_row, bool *out_found)
{
    struct sim_proc *proc = proc_of(context);
    struct fgw_migrate_answer answer;
    (void)keyspace;
    if (!begin_control(proc, lane == FGW_MIGRATE_HEARTBEAT, "fgw_schema_lock", &answer)) {
        return answer;
    }
    struct fgw_migrate_lock_row row = proc->sim->db.lock;
    bool found = proc->sim->db.have_lock;
    answer = end_read(proc, plain(FGW_MIGRATE_OK, 0, ""));
    *out_row = row;
    *out_found = found;
    return answer;
}

static struct fgw_migrate_answer lock_insert(void *context, const char *keyspace,
                                             const struct fgw_migrate_lock_row *row,
                                             bool *out_applied)
{
    (void)keyspace;
    struct sim_effect effect = {.kind = SIM_LOCK_INSERT, .lock = *row};
    return submit(proc_of(context), false, &effect, out_applied);
}

static struct fgw_migrate_answer lock_update(void *context, enum fgw_migrate_lane lane,
                                             const char *keyspace,
                                             const struct fgw_migrate_lock_row *row, unsigned set,
                                             const struct fgw_migrate_lock_row *seen,
                                             bool *out_applied)
{
    (void)keyspace;
    struct sim_effect effect = {
        .kind = SIM_LOCK_UPDATE, .lock = *row, .lock_seen = *seen, .set = set};
    return submit(proc_of(context), lane == FGW_MIGRATE_HEARTBEAT, &effect, out_applied);
}

static struct fgw_migrate_answer state_read(void *context, const char *keyspace,
                                            struct fgw_migrate_state_row *out_row, bool *out_found)
{
    struct sim_proc *proc = proc_of(context);
    struct fgw_migrate_answer answer;
    (void)keyspace;
    if (!begin_control(proc, false, "fgw_schema_state", &answer)) {
        return answer;
    }
    *out_row = proc->sim->db.state;
    *out_found = proc->sim->db.have_state;
    return end_read(proc, plain(FGW_MIGRATE_OK, 0, ""));
}

static struct fgw_migrate_answer state_insert(void *context, const char *keyspace,
                                              const struct fgw_migrate_state_row *row,
                                              bool *out_applied)
{
    (void)keyspace;
    struct sim_effect effect = {.kind = SIM_STATE_INSERT, .state = *row};
    return submit(proc_of(context), false, &effect, out_applied);
}

static struct fgw_migrate_answer state_update(void *context, const char *keyspace,
                                              const struct fgw_migrate_state_row *row,
                                              const struct fgw_migrate_state_row *seen,
                                              bool *out_applied)
{
    (void)keyspace;
    struct sim_effect effect = {.kind = SIM_STATE_UPDATE, .state = *row, .state_seen = *seen};
    return submit(proc_of(context), false, &effect, out_applied);
}

static struct fgw_migrate_answer journal_read(void *context, const char *keyspace, const char *set,
                                              struct fgw_arena *arena,
                                              struct fgw_migrate_journal_row **out_rows,
                                              size_t *out_count)
{
    struct sim_proc *proc = proc_of(context);
    struct fgw_migrate_answer answer;
    (void)keyspace;
    (void)set;
    if (!begin_control(proc, false, "fgw_schema_journal", &answer)) {
        return answer;
    }
    size_t count = (size_t)proc->sim->db.journal_count;
    *out_rows = fgw_arena_alloc(arena, (count + 1) * sizeof(**out_rows));
    memcpy(*out_rows, proc->sim->db.journal, count * sizeof(**out_rows));
    *out_count = count;
    return end_read(proc, plain(FGW_MIGRATE_OK, 0, ""));
}

static struct fgw_migrate_answer journal_insert(void *context, const char *keyspace,
                                                const char *set,
                                                const struct fgw_migrate_journal_row *row,
                                                bool *out_applied)
{
    (void)keyspace;
    (void)set;
    struct sim_effect effect = {.kind = SIM_JOURNAL_INSERT, .journal = *row};
    return submit(proc_of(context), false, &effect, out_applied);
}

static struct fgw_migrate_answer journal_update(void *context, const char *keyspace,
                                                const char *set,
                                                const struct fgw_migrate_journal_row *row,
                                                const struct fgw_migrate_journal_row *seen,
                                                bool *out_applied)
{
    (void)keyspace;
    (void)set;
    struct sim_effect effect = {.kind = SIM_JOURNAL_UPDATE, .journal = *row, .journal_seen = *seen};
    return submit(proc_of(context), false, &effect, out_applied);
}

static struct fgw_migrate_answer history_insert(void *context, const char *keyspace,
                                                const char *set,
                                                const struct fgw_migrate_history_row *row)
{
    (void)keyspace;
    (void)set;
    bool applied;
    struct sim_effect effect = {.kind = SIM_HISTORY, .history = *row};
    return submit(proc_of(context), false, &effect, &applied);
}

static struct fgw_migrate_answer nodes_read(void *context, const char *keyspace,
                                            struct fgw_arena *arena,
                                            struct fgw_migrate_node_row **out_rows,
                                            size_t *out_count)
{
    struct sim_proc *proc = proc_of(context);
    struct fgw_migrate_answer answer;
    (void)keyspace;
    if (!begin_control(proc, false, "fgw_schema_nodes", &answer)) {
        return answer;
    }
    size_t count = (size_t)proc->sim->db.node_count;
    *out_rows = fgw_arena_alloc(arena, (count + 1) * sizeof(**out_rows));
    memcpy(*out_rows, proc->sim->db.nodes, count * sizeof(**out_rows));
    *out_count = count;
    return end_read(proc, plain(FGW_MIGRATE_OK, 0, ""));
}

static struct fgw_migrate_answer nodes_write(void *context, const char *keyspace,
                                             const struct fgw_migrate_node_row *row)
{
    (void)keyspace;
    bool applied;
    struct sim_effect effect = {.kind = SIM_NODE, .node = *row};
    return submit(proc_of(context), false, &effect, &applied);
}

static struct fgw_migrate_answer mirror_read(void *context, const char *keyspace,
                                             struct fgw_arena *arena,
                                             struct fgw_migrate_mirror_row **out_rows,
                                             size_t *out_count)
{
    struct sim_proc *proc = proc_of(context);
    struct fgw_migrate_answer answer;
    (void)keyspace;
    if (!begin_control(proc, false, "schema_migrations", &answer)) {
        return answer;
    }
    size_t count = (size_t)proc->sim->db.mirror_count;
    *out_rows = fgw_arena_alloc(arena, (count + 1) * sizeof(**out_rows));
    memcpy(*out_rows, proc->sim->db.mirror, count * sizeof(**out_rows));
    *out_count = count;
    return end_read(proc, plain(FGW_MIGRATE_OK, 0, ""));
}

static struct fgw_migrate_answer mirror_insert(void *context, const char *keyspace,
                                               struct fgw_migrate_mirror_row row, bool *out_applied)
{
    (void)keyspace;
    struct sim_effect effect = {.kind = SIM_MIRROR_INSERT, .mirror = row};
    return submit(proc_of(context), false, &effect, out_applied);
}

static struct fgw_migrate_answer mirror_update(void *context, const char *keyspace,
                                               struct fgw_migrate_mirror_row row, bool *out_applied)
{
    (void)keyspace;
    struct sim_effect effect = {.kind = SIM_MIRROR_UPDATE, .mirror = row};
    return submit(proc_of(context), false, &effect, out_applied);
}

static struct fgw_migrate_answer mirror_delete(void *context, const char *keyspace, int64_t version)
{
    (void)keyspace;
    bool applied;
    struct sim_effect effect = {.kind = SIM_MIRROR_DELETE, .mirror = {version, false}};
    return submit(proc_of(context), false, &effect, &applied);
}

/* -- rows ---------------------------------------------------------------------------------- */

static struct fgw_migrate_answer rows_read(void *context, const char *keyspace,
                                           const struct fgw_migrate_table *want, size_t limit,
                                           struct fgw_bytes *cursor, struct fgw_arena *arena,
                                           struct fgw_migrate_cells **out_rows, size_t *out_count)
{
    struct sim_proc *proc = proc_of(context);
    struct fgw_migrate_answer answer;
    (void)keyspace;
    if (!begin_read(proc, false, &answer)) {
        return answer;
    }
    struct sim_table *table = sim_table(proc->sim, want->name);
    if (sim_shape(proc->sim, want->name) == NULL) {
        return end_read(proc,
                        plain(FGW_MIGRATE_NOT_FOUND, -301, "Object Not Found (ql error -301)"));
    }
    *out_rows = fgw_arena_zalloc(arena, (limit + 1) * sizeof(**out_rows));
    *out_count = 0;
    uint64_t from = 0;
    if (cursor->len > 0 && fgw_bytes_to_u64(*cursor, &from) != FGW_OK) {
        sim_fail(proc->sim, "a cursor that is not ours");
    }
    limit = limit > 5 ? 5 : limit; /* pages are as short as the server likes */
    int i = (int)from;
    for (; i < table->row_count && *out_count < limit; i++) {
        struct fgw_bytes *cells = fgw_arena_zalloc(arena, want->column_count * sizeof *cells);
        for (size_t k = 0; k < want->column_count; k++) {
            for (int c = 0; c < table->rows[i].count; c++) {
                bool same = strcmp(table->rows[i].cells[c].column, want->columns[k].name) == 0;
                if (same && !table->rows[i].cells[c].null) {
                    cells[k] = fgw_arena_copy(arena, fgw_bytes_str(table->rows[i].cells[c].value));
                }
            }
        }
        (*out_rows)[(*out_count)++].cells = cells;
    }
    *cursor =
        i < table->row_count ? fgw_bytes_str(fgw_arena_printf(arena, "%d", i)) : fgw_bytes(NULL, 0);
    return end_read(proc, plain(FGW_MIGRATE_OK, 0, ""));
}

static struct sim_row row_from(const struct fgw_migrate_table *table, const struct fgw_bytes *cells)
{
    struct sim_row row = {.count = 0};
    for (size_t i = 0; i < table->column_count; i++) {
        if (cells[i].ptr == NULL) {
            continue;
        }
        (void)snprintf(row.cells[row.count].column, sizeof row.cells[0].column, "%s",
                       table->columns[i].name);
        (void)snprintf(row.cells[row.count].value, sizeof row.cells[0].value, "%.*s",
                       FGW_FMT(cells[i]));
        row.count++;
    }
    return row;
}

static struct fgw_migrate_answer row_write(void *context, const char *keyspace,
                                           const struct fgw_migrate_table *table,
                                           const struct fgw_bytes *cells)
{
    (void)keyspace;
    bool applied;
    struct sim_effect effect = {.kind = SIM_ROW_WRITE, .row = row_from(table, cells)};
    (void)snprintf(effect.table, sizeof effect.table, "%s", table->name);
    return submit(proc_of(context), false, &effect, &applied);
}

static struct fgw_migrate_answer row_check(void *context, const char *keyspace,
                                           const struct fgw_migrate_table *want,
                                           const struct fgw_bytes *cells, bool *out_found)
{
    struct sim_proc *proc = proc_of(context);
    struct fgw_migrate_answer answer;
    (void)keyspace;
    if (!begin_read(proc, false, &answer)) {
        return answer;
    }
    struct sim_row row = row_from(want, cells);
    struct sim_table *table = sim_table(proc->sim, want->name);
    *out_found = false;
    for (int i = 0; table != NULL && i < table->row_count; i++) {
        int same = 0;
        for (int a = 0; a < row.count; a++) {
            for (int b = 0; b < table->rows[i].count; b++) {
                same += strcmp(row.cells[a].column, table->rows[i].cells[b].column) == 0 &&
                        strcmp(row.cells[a].value, table->rows[i].cells[b].value) == 0;
            }
        }
        *out_found = *out_found || same == row.count;
    }
    return end_read(proc, plain(FGW_MIGRATE_OK, 0, ""));
}

static struct fgw_migrate_answer row_delete(void *context, const char *keyspace,
                                            const struct fgw_migrate_table *table,
                                            const struct fgw_bytes *cells)
{
    (void)keyspace;
    bool applied;
    struct sim_effect effect = {.kind = SIM_ROW_DELETE, .row = row_from(table, cells)};
    (void)snprintf(effect.table, sizeof effect.table, "%s", table->name);
    return submit(proc_of(context), false, &effect, &applied);
}

void sim_ops_init(struct sim_proc *proc)
{
    proc->ops = (struct fgw_migrate_ops){
        .now_boot_ms = now_boot_ms,
        .now_wall_ms = now_wall_ms,
        .sleep_ms = sleep_ms,
        .random = random_bytes,
        .stop_requested = stop_requested,
        .start_task = start_task,
        .join_task = join_task,
        .guard = guard,
        .unguard = unguard,
        .point = point,
        .log = log_line,
        .keyspace_exists = keyspace_exists,
        .keyspace_create = keyspace_create,
        .send = send_text,
        .list_tables = list_tables,
        .read_table = read_table,
        .probe = probe,
        .lock_read = lock_read,
        .lock_insert = lock_insert,
        .lock_update = lock_update,
        .state_read = state_read,
        .state_insert = state_insert,
        .state_update = state_update,
        .journal_read = journal_read,
        .journal_insert = journal_insert,
        .journal_update = journal_update,
        .history_insert = history_insert,
        .nodes_read = nodes_read,
        .nodes_write = nodes_write,
        .mirror_read = mirror_read,
        .mirror_insert = mirror_insert,
        .mirror_update = mirror_update,
        .mirror_delete = mirror_delete,
        .rows_read = rows_read,
        .row_write = row_write,
        .row_check = row_check,
        .row_delete = row_delete,
        .context = proc,
    };
}
