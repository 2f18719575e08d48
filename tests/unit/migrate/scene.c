/* scene.c: see scene.h. */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

struct scene_sets sets;
struct sim sim;
static struct fgw_arena arena;

static const char multipart[] =
    "CREATE TABLE MultipartUploads (upload_id text, bucket text, key text, node_id text,"
    " created_at timestamp, expires_at timestamp, status text, PRIMARY KEY (upload_id));";
static const char alpha[] = "-- phase: expand\n"
                            "CREATE TABLE alpha (id text, v text, old text, PRIMARY KEY (id));\n"
                            "ALTER TABLE multipartuploads ADD rev blob;\n"
                            "INSERT INTO alpha (id, v) VALUES ('1', 'x;y');\n";
static const char alpha_commented[] =
    "-- phase: expand\n-- note: the table's own\n\n"
    "CREATE TABLE alpha (id   text, /* ; */ v text, old text,\n PRIMARY KEY (id));\n"
    "ALTER TABLE multipartuploads ADD rev blob; -- it's here\n"
    "INSERT INTO alpha (id, v) VALUES ('1', 'x;y')";
static const char alpha_edited[] =
    "CREATE TABLE alpha (id text, v bigint, old text, PRIMARY KEY (id));\n"
    "ALTER TABLE multipartuploads ADD rev blob;\n"
    "INSERT INTO alpha (id, v) VALUES ('1', 7);\n";
static const char alpha_appended[] =
    "CREATE TABLE alpha (id text, v text, old text, PRIMARY KEY (id));\n"
    "ALTER TABLE multipartuploads ADD rev blob;\n"
    "INSERT INTO alpha (id, v) VALUES ('1', 'x;y');\n"
    "CREATE TABLE alpha_more (id text, PRIMARY KEY (id));";
static const char between[] = "CREATE TABLE between_files (id text, PRIMARY KEY (id));";
static const char beta[] = "CREATE TABLE beta (id text, at bigint, v text, PRIMARY KEY ((id), at))"
                           " WITH CLUSTERING ORDER BY (at DESC) AND default_time_to_live = 60;\n"
                           "ALTER TABLE alpha ADD w text;\n"
                           "ALTER TABLE beta WITH default_time_to_live = 0;";
static const char gamma_expand[] = "CREATE TABLE gamma (id text, PRIMARY KEY (id));";
static const char contract_text[] = "-- phase: contract\n-- min-compat: 20260102000000\n"
                                    "ALTER TABLE alpha DROP old; DROP TABLE beta;";

static void build(struct fgw_migrate_set *set, const char *name, int count, const int64_t *versions,
                  const char *const *texts)
{
    struct fgw_migrate_source sources[8];
    for (int i = 0; i < count; i++) {
        sources[i] = (struct fgw_migrate_source){
            .version = versions[i], .name = "test", .text = texts[i], .text_len = strlen(texts[i])};
    }
    struct fgw_error error;
    fgw_error_init(&error);
    if (fgw_migrate_set_build(&arena, name, sources, (size_t)count, &error, set) != FGW_OK) {
        (void)fprintf(stderr, "%s\n", fgw_error_message(&error));
        abort();
    }
}

static void embedded(struct fgw_migrate_set *set, const char *name)
{
    size_t count;
    const struct fgw_migrate_source *sources = fgw_migrate_embedded(name, &count);
    FGW_CHECK(fgw_migrate_set_build(&arena, name, sources, count, NULL, set) == FGW_OK);
}

#define SET(set, ...) \
    do { \
        static const char *const texts[] = {__VA_ARGS__}; \
        build(&(set), "shared", (int)FGW_COUNT_OF(texts), versions, texts); \
    } while (0)

int scene_setup(void **state)
{
    (void)state;
    static const int64_t versions[] = {1756300000, 20260101000000, 20260102000000, 20260103000000};
    fgw_arena_init(&arena, 0);
    embedded(&sets.shared, "shared");
    embedded(&sets.node, "node");
    SET(sets.small, multipart, alpha, beta);
    SET(sets.older, multipart, alpha);
    SET(sets.contract, multipart, alpha, beta, contract_text);
    SET(sets.newer, multipart, alpha, beta, gamma_expand);
    SET(sets.edited, multipart, alpha_edited, beta);
    SET(sets.commented, multipart, alpha_commented, beta);
    SET(sets.appended, multipart, alpha_appended, beta);
    static const int64_t between_versions[] = {1756300000, 20260101000000, 20260101120000,
                                               20260102000000};
    static const char *const between_texts[] = {multipart, alpha, between, beta};
    build(&sets.inserted, "shared", 4, between_versions, between_texts);
    static const int64_t gap_versions[] = {1756300000, 20260102000000};
    static const char *const gap_texts[] = {multipart, gamma_expand};
    build(&sets.gap, "shared", 2, gap_versions, gap_texts);
    return 0;
}

int scene_teardown(void **state)
{
    (void)state;
    fgw_arena_deinit(&arena);
    return 0;
}

int scene_begin(void **state)
{
    (void)state;
    sim_init(&sim, 1);
    return 0;
}

int scene_end(void **state)
{
    (void)state;
    sim_deinit(&sim);
    return 0;
}

int scene_seeds(int usual)
{
    const char *text = getenv("FGW_SIM_SEEDS");
    uint64_t times = 1;
    if (text == NULL || fgw_bytes_to_u64(fgw_bytes_str(text), &times) != FGW_OK || times == 0) {
        times = 1;
    }
    return usual * (int)(times > 1000 ? 1000 : times);
}

void scene_calm(void)
{
    sim.lose_answer = sim.lose_request = sim.late_effect = sim.refuse = sim.answer_300 = 0;
    sim.ddl_lose_answer = sim.ddl_late = sim.ddl_300 = 0;
    sim.stale_ms[0] = sim.stale_ms[1] = 0;
    sim.never_visible = sim.unreadable = false;
    sim.deny_ddl = sim.deny_control = sim.read_only = false;
}

static void dump(const struct sim_proc *proc)
{
    for (size_t i = 0; i < proc->report->finding_count; i++) {
        (void)fprintf(
            stderr, "[%s] %s", proc->name,
            fgw_migrate_finding_text(&sim.arena, proc->report, &proc->report->findings[i]));
    }
}

void scene_check_reports(void)
{
    assert_false(sim.failed);
    for (int i = 0; i < sim.proc_count; i++) {
        const struct sim_proc *proc = sim.procs[i];
        bool said = proc->dead || proc->exit == FGW_MIGRATE_EXIT_OK ||
                    proc->exit == FGW_MIGRATE_EXIT_PENDING;
        for (size_t k = 0; !proc->dead && k < proc->report->finding_count; k++) {
            const struct fgw_migrate_finding *finding = &proc->report->findings[k];
            bool error = finding->severity == FGW_MIGRATE_ERROR;
            said = said || error;
            if (error && finding->code != FGW_MIGRATE_NOTE && !*finding->next) {
                dump(proc);
                fail_msg("I6: finding without a next command");
            }
        }
        if (!said) {
            dump(proc);
            fail_msg("I6: exit %d without a finding (seed %llu)", proc->exit,
                     (unsigned long long)sim.seed);
        }
    }
}

void scene_converge(const struct fgw_migrate_set *set, int runs)
{
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_INTERNAL;
    for (int i = 0; i < runs && exit != FGW_MIGRATE_EXIT_OK; i++) {
        exit = sim_once(&sim, set, SIM_UP);
        assert_false(sim.failed);
        scene_check_reports();
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        dump(sim.procs[0]);
        fail_msg("no convergence: exit %d (seed %llu)", exit, (unsigned long long)sim.seed);
    }
}

static void check_catalog(const struct fgw_migrate_set *set)
{
    bool done[32] = {false};
    for (size_t i = 0; i < set->file_count; i++) {
        done[i] = set->files[i].contract && sim.db.state.version >= set->files[i].version;
    }
    struct fgw_migrate_catalog expected;
    fgw_migrate_expected(&sim.arena, set, set->knows, done, &expected);
    for (size_t i = 0; i < expected.table_count; i++) {
        struct fgw_migrate_diff diff;
        fgw_migrate_table_compare(&sim.arena, expected.tables[i],
                                  sim_shape(&sim, expected.tables[i]->name), &diff);
        if (!diff.equal) {
            fail_msg("I1: %s: %s (seed %llu)", expected.tables[i]->name, diff.text,
                     (unsigned long long)sim.seed);
        }
    }
}

void scene_check_final(const struct fgw_migrate_set *set)
{
    check_catalog(set);
    assert_true(sim.db.have_state);
    assert_true(sim.db.state.version >= set->needs);
    assert_int_equal(sim.db.mirror_count, 1);
    assert_false(sim.db.mirror[0].dirty);
    assert_int_equal(sim.db.lock.i_phase, FGW_MIGRATE_INTENT_NONE);
    int ddl = sim.db.ddl_applied;
    assert_int_equal(sim_once(&sim, set, SIM_UP), FGW_MIGRATE_EXIT_OK);
    assert_int_equal(sim.procs[0]->writes, 0); /* I5 */
    assert_int_equal(sim.db.ddl_applied, ddl);
    assert_int_equal(sim.db.rows_lost, 0);
}

struct sim_proc *scene_command(const struct fgw_migrate_set *set, enum sim_command command,
                               const struct fgw_migrate_options *changes)
{
    sim_forget(&sim);
    struct sim_proc *proc = sim_add(&sim, "command", set, command, 0);
    struct fgw_migrate_options options = *changes;
    options.keyspace = proc->options.keyspace;
    options.set = set;
    options.actor = proc->options.actor;
    options.build = proc->options.build;
    options.timing = proc->options.timing;
    proc->options = options;
    sim_run(&sim);
    scene_check_reports();
    return proc;
}

/* -- fixtures ------------------------------------------------------------------------------ */

void scene_legacy(int64_t version)
{
    size_t count;
    const struct fgw_migrate_legacy *tables = fgw_migrate_legacy_tables(&count);
    for (size_t i = 0; i < count && tables[i].version <= version; i++) {
        sim_cql(&sim, tables[i].create);
    }
    sim_mirror(&sim, version, false);
}

void scene_compose(int s3objects_columns)
{
    sim_cql(&sim, "CREATE TABLE MultihashToGroup (Multihash blob, Group bigint, Size int,"
                  " PRIMARY KEY (Multihash, Group))");
    sim_cql(&sim, s3objects_columns == 5
                      ? "CREATE TABLE S3Objects (bucket text, key text, cid text, size bigint,"
                        " updated timestamp, PRIMARY KEY (bucket, key))"
                      : "CREATE TABLE S3Objects (bucket text, key text, cid text, size bigint,"
                        " updated timestamp, node_id text, expires_at timestamp,"
                        " PRIMARY KEY (bucket, key))");
    sim_cql(&sim, "CREATE TABLE MultipartUploads (bucket text, key text, upload_id text,"
                  " node_id text, created_at timestamp, PRIMARY KEY ((bucket, key), upload_id))");
    sim_mirror(&sim, 1754293669, true);
}

void scene_upload_rows(int count)
{
    static const char *const columns[] = {"bucket", "key", "upload_id", "node_id", "created_at"};
    for (int i = 0; i < count; i++) {
        char key[16];
        char id[16];
        (void)snprintf(key, sizeof key, "k%d", i);
        (void)snprintf(id, sizeof id, "u%d", i);
        const char *const values[] = {"b", key, id, "kuri-1", "1700000000"};
        sim_row(&sim, "multipartuploads", 5, columns, values);
    }
}

int64_t scene_go_version(bool *out_dirty)
{
    *out_dirty = sim.db.mirror_count > 0 && sim.db.mirror[0].dirty;
    return sim.db.mirror_count > 0 ? sim.db.mirror[0].version : -1;
}
