/* test_rows_states.c: rows 17 to 25 of spec/migrations.md E3: states a database is found in after
 * people, other programs or a backup have been at it. */
#include "scene.h"

#include <stdio.h>

static void up_ok(const struct fgw_migrate_set *set)
{
    enum fgw_migrate_exit exit = sim_once(&sim, set, SIM_UP);
    scene_check_reports();
    if (exit != FGW_MIGRATE_EXIT_OK) {
        for (size_t i = 0; i < sim.procs[0]->report->finding_count; i++) {
            print_error("%s", fgw_migrate_finding_text(&sim.arena, sim.procs[0]->report,
                                                       &sim.procs[0]->report->findings[i]));
        }
    }
    assert_int_equal(exit, FGW_MIGRATE_EXIT_OK);
}

static const struct fgw_migrate_options apply = {.apply = true};
static const struct fgw_migrate_options apply_drop = {.apply = true, .allow_drop_empty = true};

/* Shows (nothing written, a decision), applies, and finds nothing the second time. */
static void repair_twice(const struct fgw_migrate_set *set,
                         const struct fgw_migrate_options *options)
{
    struct sim_proc *show =
        scene_command(set, SIM_REPAIR, &(struct fgw_migrate_options){.reason = ""});
    assert_int_equal(show->exit, FGW_MIGRATE_EXIT_DECISION);
    assert_int_equal(show->writes, 0);
    assert_true(show->report->pending_count > 0);
    struct sim_proc *done = scene_command(set, SIM_REPAIR, options);
    for (size_t i = 0; done->exit != 0 && i < done->report->finding_count; i++) {
        print_error("%s",
                    fgw_migrate_finding_text(&sim.arena, done->report, &done->report->findings[i]));
    }
    assert_int_equal(done->exit, FGW_MIGRATE_EXIT_OK);
    int ddl = sim.db.ddl_applied;
    assert_int_equal(scene_command(set, SIM_REPAIR, options)->exit, FGW_MIGRATE_EXIT_OK);
    assert_int_equal(sim.db.ddl_applied, ddl);
}

static void row17_dirty_set_by_hand(void **state)
{
    (void)state;
    up_ok(&sets.small);
    sim.db.mirror[0].dirty = true;
    int ddl = sim.db.ddl_applied;
    up_ok(&sets.small);
    assert_int_equal(sim.db.ddl_applied, ddl);
    scene_check_final(&sets.small);
}

static void row17_dirty_legacy_with_a_correct_schema(void **state)
{
    (void)state;
    static const int64_t versions[] = {1753962462, 1754293669, 1756288741, 1756300000, 1769890615};
    for (size_t i = 0; i < 5; i++) {
        sim_deinit(&sim);
        sim_init(&sim, i + 1);
        scene_legacy(versions[i]);
        sim_mirror(&sim, versions[i], true);
        up_ok(&sets.small);
        scene_check_final(&sets.small);
    }
}

static void row18_dirty_cleared_on_a_half_schema(void **state)
{
    (void)state;
    scene_legacy(1756288741);
    sim_mirror(&sim, 1756300000, false); /* the table of 1756300000 was never made */
    sim.db.mirror[0] = sim.db.mirror[1];
    sim.db.mirror_count = 1;
    up_ok(&sets.small);
    assert_non_null(sim_shape(&sim, "multipartuploads"));
    scene_check_final(&sets.small);
}

static void row18_half_of_our_own_schema(void **state)
{
    (void)state;
    sim_add(&sim, "victim", &sets.small, SIM_UP, 0)->kill_point = FGW_MIGRATE_AT_S8;
    sim_run(&sim);
    sim.db.mirror[0].dirty = false;
    sim.now_us += 60000000;
    up_ok(&sets.small);
    scene_check_final(&sets.small);
}

static void row19_mirror_edited(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)kind + 1);
        up_ok(&sets.small);
        if (kind == 0) {
            sim_mirror(&sim, 4711, false); /* an upsert with a wrong version */
        } else if (kind == 1) {
            sim_mirror(&sim, 1756300000, true);
            sim_mirror(&sim, 99999999999999, false);
        } else if (kind == 2) {
            sim.db.mirror_count = 0;
            sim.db.mirror_seen = false;
        } else {
            sim_drop(&sim, "schema_migrations");
        }
        up_ok(&sets.small);
        bool foreign = sim_finding(sim.procs[0], FGW_MIGRATE_FOREIGN_WRITER) != NULL;
        assert_int_equal(foreign, kind < 2);
        scene_check_final(&sets.small);
    }
}

static void row19_mirror_of_wrong_types(void **state)
{
    (void)state;
    sim_cql(&sim, "CREATE TABLE schema_migrations (version text PRIMARY KEY, dirty int)");
    assert_int_equal(sim_once(&sim, &sets.small, SIM_UP), FGW_MIGRATE_EXIT_DECISION);
    scene_check_reports();
    struct sim_proc *proc = scene_command(&sets.small, SIM_REPAIR, &apply);
    assert_int_equal(proc->exit, FGW_MIGRATE_EXIT_DECISION); /* names the flag */
    assert_int_equal(scene_command(&sets.small, SIM_REPAIR, &apply_drop)->exit, 0);
    scene_check_final(&sets.small);
}

static void row19_first_contact_with_odd_mirrors(void **state)
{
    (void)state;
    /* several rows: none on trust, the catalog is exact */
    scene_legacy(1756300000);
    sim_mirror(&sim, 1754293669, true);
    sim_mirror(&sim, 1753962462, false);
    up_ok(&sets.small);
    scene_check_final(&sets.small);
    /* no row and tables that fit no version: a decision */
    sim_deinit(&sim);
    sim_init(&sim, 2);
    sim_cql(&sim, "CREATE TABLE beta (id text, at bigint, v text, PRIMARY KEY ((id), at))"
                  " WITH CLUSTERING ORDER BY (at DESC)");
    assert_int_equal(sim_once(&sim, &sets.small, SIM_UP), FGW_MIGRATE_EXIT_DECISION);
    scene_check_reports();
    assert_non_null(sim_finding(sim.procs[0], FGW_MIGRATE_VERSION_LOST));
    struct sim_proc *proc = scene_command(
        &sets.small, SIM_REPAIR, &(struct fgw_migrate_options){.apply = true, .adopt = true});
    assert_int_equal(proc->exit, 0);
    scene_check_final(&sets.small);
    /* a version nobody knows, above all ours */
    sim_deinit(&sim);
    sim_init(&sim, 3);
    sim_mirror(&sim, 99999999999999, false);
    assert_int_equal(sim_once(&sim, &sets.small, SIM_UP), FGW_MIGRATE_EXIT_INCOMPATIBLE);
    scene_check_reports();
    proc = scene_command(&sets.small, SIM_REPAIR,
                         &(struct fgw_migrate_options){.apply = true, .adopt = true});
    assert_int_equal(proc->exit, 0);
    scene_check_final(&sets.small);
}

static const char *const evidence[] = {"fgw_schema_state",   "fgw_schema_journal",
                                       "fgw_schema_history", "fgw_schema_lock",
                                       "fgw_schema_nodes",   "schema_migrations"};

static void row20_evidence_lost(void **state)
{
    (void)state;
    for (unsigned mask = 1; mask < 64; mask++) {
        sim_deinit(&sim);
        sim_init(&sim, mask);
        for (int i = 0; i < 3; i++) { /* a few epochs */
            up_ok(&sets.small);
            sim.db.mirror[0].dirty = true;
        }
        int64_t epoch = sim.db.lock.epoch;
        int64_t journal_epoch = 0;
        for (int i = 0; i < sim.db.journal_count; i++) {
            int64_t each = sim.db.journal[i].epoch;
            journal_epoch = each > journal_epoch ? each : journal_epoch;
        }
        for (size_t i = 0; i < 6; i++) {
            if (mask & (1u << i)) {
                sim_drop(&sim, evidence[i]);
            }
        }
        bool lock_kept = (mask & 8) == 0;
        sim.tampered = !lock_kept;
        up_ok(&sets.small);
        bool journal_kept = (mask & 2) == 0;
        if (lock_kept) {
            assert_true(sim.db.lock.epoch >= epoch);
        } else if (journal_kept) {
            assert_true(sim.db.lock.epoch > journal_epoch);
        }
        scene_check_final(&sets.small);
    }
}

static void row20_rows_lost(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)kind + 1);
        up_ok(&sets.small);
        sim.tampered = true;
        sim.db.have_state = kind == 0 ? false : sim.db.have_state;
        sim.db.have_lock = kind == 1 ? false : sim.db.have_lock;
        sim.db.journal_count -= kind == 2 ? 2 : 0;
        sim.db.journal_count = kind == 3 ? 0 : sim.db.journal_count;
        up_ok(&sets.small);
        scene_check_final(&sets.small);
    }
}

static void row21_lock_row_restored(void **state)
{
    (void)state;
    for (int live = 0; live < 2; live++) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)live + 1);
        up_ok(&sets.older);
        struct fgw_migrate_lock_row backup = sim.db.lock;
        backup.owner.bytes[3] = 77; /* a holder of then */
        backup.epoch = 1;
        sim_forget(&sim);
        sim.tampered = true;
        if (live == 0) {
            sim.db.lock = backup; /* dead owner: expires */
            up_ok(&sets.small);
        } else {
            sim.ddl_ms = 20000;
            struct sim_proc *holder = sim_add(&sim, "holder", &sets.small, SIM_UP, 0);
            sim_run_until(&sim, sim.now_us + 9000000);
            assert_true(holder->points[FGW_MIGRATE_AT_S4] > 0); /* at work */
            sim.db.lock = backup;
            sim_run(&sim);
            scene_check_reports();
            assert_int_equal(holder->exit, FGW_MIGRATE_EXIT_LOST);
            sim.ddl_ms = 400;
            scene_converge(&sets.small, 1);
        }
        scene_check_final(&sets.small);
    }
}

static void row22_table_dropped(void **state)
{
    (void)state;
    up_ok(&sets.small);
    sim_drop(&sim, "alpha");
    assert_int_equal(sim_once(&sim, &sets.small, SIM_UP), FGW_MIGRATE_EXIT_DRIFT);
    scene_check_reports();
    const struct fgw_migrate_finding *finding = sim_finding(sim.procs[0], FGW_MIGRATE_NOT_PRESENT);
    assert_non_null(finding);
    assert_string_equal(finding->object, "alpha");
    repair_twice(&sets.small, &apply);
    scene_check_final(&sets.small);
}

static void row22_table_recreated_with_another_key(void **state)
{
    (void)state;
    up_ok(&sets.small);
    sim_drop(&sim, "multipartuploads");
    sim_cql(&sim, "CREATE TABLE multipartuploads (bucket text, key text, upload_id text,"
                  " PRIMARY KEY ((bucket, key), upload_id))");
    assert_int_equal(sim_once(&sim, &sets.small, SIM_VERIFY), FGW_MIGRATE_EXIT_DRIFT);
    scene_check_reports();
    const struct fgw_migrate_finding *finding =
        sim_finding(sim.procs[0], FGW_MIGRATE_SHAPE_CONFLICT);
    assert_non_null(finding);
    assert_non_null(
        strstr(finding->diff, "key: want ((upload_id))  have ((bucket, key), upload_id)"));
    assert_int_equal(scene_command(&sets.small, SIM_REPAIR, &apply)->exit,
                     FGW_MIGRATE_EXIT_DECISION);
    repair_twice(&sets.small, &apply_drop);
    scene_check_final(&sets.small);
}

static void row22_columns(void **state)
{
    (void)state;
    /* missing (made by a CREATE, made by an ADD), extra, wrong type, wrong order, wrong TTL */
    up_ok(&sets.small);
    sim_cql(&sim, "ALTER TABLE alpha DROP old");
    sim_cql(&sim, "ALTER TABLE multipartuploads DROP rev");
    assert_int_equal(sim_once(&sim, &sets.small, SIM_UP), FGW_MIGRATE_EXIT_DRIFT);
    scene_check_reports();
    repair_twice(&sets.small, &apply);
    scene_check_final(&sets.small);

    sim_cql(&sim, "ALTER TABLE alpha ADD surprise int");
    up_ok(&sets.small);
    struct sim_proc *verify =
        scene_command(&sets.small, SIM_VERIFY, &(struct fgw_migrate_options){.reason = ""});
    assert_int_equal(verify->exit, 0);
    assert_int_equal(sim_finding(verify, FGW_MIGRATE_SHAPE_CONFLICT)->severity,
                     FGW_MIGRATE_WARNING);
    verify = scene_command(&sets.small, SIM_VERIFY, &(struct fgw_migrate_options){.strict = true});
    assert_int_equal(verify->exit, FGW_MIGRATE_EXIT_DRIFT);
    sim_cql(&sim, "ALTER TABLE alpha DROP surprise");

    sim_cql(&sim, "ALTER TABLE beta WITH default_time_to_live = 5");
    assert_int_equal(sim_once(&sim, &sets.small, SIM_UP), FGW_MIGRATE_EXIT_DRIFT);
    repair_twice(&sets.small, &apply);
    scene_check_final(&sets.small);

    sim_cql(&sim, "ALTER TABLE alpha DROP w");
    sim_cql(&sim, "ALTER TABLE alpha ADD w bigint");
    assert_int_equal(sim_once(&sim, &sets.small, SIM_UP), FGW_MIGRATE_EXIT_DRIFT);
    assert_non_null(strstr(sim_finding(sim.procs[0], FGW_MIGRATE_SHAPE_CONFLICT)->diff,
                           "type: w want text  have bigint"));
}

static void row22_clustering_order(void **state)
{
    (void)state;
    up_ok(&sets.small);
    sim_drop(&sim, "beta");
    sim_cql(&sim, "CREATE TABLE beta (id text, at bigint, v text, PRIMARY KEY ((id), at))");
    assert_int_equal(sim_once(&sim, &sets.small, SIM_UP), FGW_MIGRATE_EXIT_DRIFT);
    assert_non_null(strstr(sim_finding(sim.procs[0], FGW_MIGRATE_SHAPE_CONFLICT)->diff,
                           "want ((id), at DESC)  have ((id), at)"));
    repair_twice(&sets.small, &apply_drop);
    scene_check_final(&sets.small);
}

static void row23_compose_database(void **state)
{
    (void)state;
    for (int columns = 5; columns <= 7; columns += 2) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)columns);
        scene_compose(columns);
        assert_int_equal(sim_once(&sim, &sets.small, SIM_UP), FGW_MIGRATE_EXIT_DECISION);
        scene_check_reports();
        const struct fgw_migrate_finding *finding =
            sim_finding(sim.procs[0], FGW_MIGRATE_SHAPE_CONFLICT);
        assert_non_null(finding);
        assert_non_null(strstr(finding->diff, "missing: expires_at timestamp, status text"));
        assert_non_null(strstr(finding->cause, "table has no rows"));
        assert_string_equal(finding->next,
                            "fgw migrate repair --apply --allow-drop-empty --keyspace ks");
        bool legacy = sim_finding(sim.procs[0], FGW_MIGRATE_NOT_PRESENT) != NULL;
        assert_int_equal(legacy, columns == 5);
        repair_twice(&sets.small, &apply_drop);
        assert_int_equal(sim_shape(&sim, "s3objects")->column_count, 7);
        scene_check_final(&sets.small);
    }
}

static void row23_repair_killed_anywhere(void **state)
{
    (void)state;
    for (int site = 0; site < 900; site += 5) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)site + 1);
        scene_compose(5);
        (void)sim_once(&sim, &sets.small, SIM_UP);
        sim_forget(&sim);
        struct sim_proc *victim = sim_add(&sim, "victim", &sets.small, SIM_REPAIR, 0);
        victim->options.apply = victim->options.allow_drop_empty = true;
        victim->kill_at = site;
        sim_run(&sim);
        assert_int_equal(scene_command(&sets.small, SIM_REPAIR, &apply_drop)->exit, 0);
        scene_check_final(&sets.small);
    }
}

/* A DROP of a repair that was killed, or asked to stop, applies late, up to the server's own limit: it
 * must not hit the table that the next repair makes under the same name. */
static void stale_drop(bool killed)
{
    for (int seed = 1; seed <= scene_seeds(120); seed++) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)seed);
        scene_compose(7);
        (void)sim_once(&sim, &sets.small, SIM_UP);
        sim_forget(&sim);
        sim.ddl_late = 700;
        sim.ddl_late_ms = seed % 2 == 0 ? 170000 : 0;
        for (int i = 0; i < 2; i++) {
            struct sim_proc *proc = sim_add(&sim, i == 0 ? "victim" : "second", &sets.small,
                                            SIM_REPAIR, (uint64_t)i * 100);
            proc->options.apply = proc->options.allow_drop_empty = true;
        }
        struct sim_proc *victim = sim.procs[0];
        while (!victim->over && victim->ddl_sent == 0) {
            sim_run_until(&sim, sim.now_us + 1000);
        }
        *(killed ? &victim->kill_at : &victim->stop_at) = victim->sites + (int)sim_below(&sim, 30);
        sim_run(&sim);
        scene_check_reports();
        scene_calm();
        if (sim.procs[1]->exit != 0) {
            assert_int_equal(scene_command(&sets.small, SIM_REPAIR, &apply_drop)->exit, 0);
        }
        scene_check_final(&sets.small);
    }
}

static void row23_stale_drop(void **state)
{
    (void)state;
    stale_drop(true);
}

static void row34_stopped_with_a_drop_in_doubt(void **state)
{
    (void)state;
    stale_drop(false);
}

/* Every row of the old table must be somewhere at the end. */
static void check_uploads(int count)
{
    const struct sim_table *uploads = sim_table(&sim, "multipartuploads");
    const struct sim_table *saved = sim_table(&sim, "multipartuploads_saved_1");
    assert_non_null(saved);
    assert_int_equal(saved->row_count, count);
    assert_int_equal(uploads->row_count, count);
    assert_int_equal(sim.db.rows_lost, 0);
}

static void row24_compose_database_with_rows(void **state)
{
    (void)state;
    scene_compose(7);
    scene_upload_rows(20);
    assert_int_equal(sim_once(&sim, &sets.small, SIM_UP), FGW_MIGRATE_EXIT_DECISION);
    scene_check_reports();
    assert_non_null(
        strstr(sim_finding(sim.procs[0], FGW_MIGRATE_SHAPE_CONFLICT)->cause, "table has rows"));
    struct sim_proc *show =
        scene_command(&sets.small, SIM_REPAIR, &(struct fgw_migrate_options){.reason = ""});
    assert_int_equal(show->exit, FGW_MIGRATE_EXIT_DECISION);
    assert_int_equal(sim_table(&sim, "multipartuploads")->row_count, 20);
    bool copy = false;
    for (size_t i = 0; i < show->report->pending_count; i++) {
        copy =
            copy || strstr(show->report->pending[i], "move the rows of multipartuploads") != NULL;
    }
    assert_true(copy);
    repair_twice(&sets.small, &apply_drop);
    check_uploads(20);
    scene_check_final(&sets.small);
}

static void row24_move_killed_anywhere(void **state)
{
    (void)state;
    for (int site = 100; site < 1100; site += 9) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)site + 1);
        scene_compose(7);
        scene_upload_rows(12);
        struct sim_proc *victim = sim_add(&sim, "victim", &sets.small, SIM_REPAIR, 0);
        victim->options.apply = victim->options.allow_drop_empty = true;
        victim->kill_at = site;
        sim_run(&sim);
        assert_int_equal(scene_command(&sets.small, SIM_REPAIR, &apply_drop)->exit, 0);
        check_uploads(12);
        scene_check_final(&sets.small);
    }
}

static void row25_old_go_engine(void **state)
{
    (void)state;
    bool dirty;
    /* while we run: stops on dirty */
    scene_legacy(1756300000);
    sim_add(&sim, "us", &sets.small, SIM_UP, 0)->kill_point = FGW_MIGRATE_AT_S4;
    sim_run(&sim);
    (void)scene_go_version(&dirty);
    assert_true(dirty);
    /* after: starts at the version it knows */
    sim.now_us += 60000000;
    up_ok(&sets.small);
    assert_int_equal(scene_go_version(&dirty), 1756300000);
    assert_false(dirty);
    /* it goes on to its last version; we follow */
    sim_cql(&sim, "CREATE TABLE GroupToMultihash (GroupId bigint, Multihash blob, Size int,"
                  " PRIMARY KEY (GroupId, Multihash))");
    sim_cql(&sim, "CREATE TABLE MultihashRefCount (Multihash blob PRIMARY KEY, RefCount counter)");
    sim_cql(&sim, "CREATE TABLE GCQueue (Epoch bigint, Multihash blob, GroupId bigint,"
                  " QueuedAt timestamp, PRIMARY KEY (Epoch, Multihash))");
    sim.db.mirror[0].version = 1769890615;
    up_ok(&sets.small);
    assert_int_equal(scene_go_version(&dirty), 1769890615);
    assert_int_equal(sim.db.state.min_compat, 1769890615);
    /* min_compat raised by a contract: it meets a number it does not know, and refuses */
    struct sim_proc *proc =
        scene_command(&sets.contract, SIM_UP, &(struct fgw_migrate_options){.contract = true});
    /* alpha.old and beta: beta is empty */
    assert_int_equal(proc->exit, 0);
    assert_int_equal(scene_go_version(&dirty), 20260103000000);
    scene_check_final(&sets.contract);
}

static void row25_fresh_database_shuts_the_old_engine_out(void **state)
{
    (void)state;
    bool dirty;
    up_ok(&sets.small);
    assert_int_equal(scene_go_version(&dirty), 20260102000000);
}

/* The situations of the field reports, in words: shared keyspace dirty at 1754293669, then the flag
 * cleared by hand; MultipartUploads right and wrong, empty and with rows. */
static void field_reports(void **state)
{
    (void)state;
    for (int kind = 0; kind < 12; kind++) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)kind + 1);
        scene_compose(7);
        if (kind & 1) {
            scene_upload_rows(3);
        }
        int step = kind / 2;
        if (step == 1) {
            sim.db.mirror[0].dirty = false;
        } else if (step == 2) {
            sim.db.mirror[0] = (struct fgw_migrate_mirror_row){1756300000, true};
        } else if (step == 3) {
            sim.db.mirror[0] = (struct fgw_migrate_mirror_row){1756300000, false};
        } else if (step == 4) {
            sim_mirror(&sim, 1756300000, false);
        } else if (step == 5) {
            sim_cql(&sim, "CREATE TABLE CidGroups (cid text PRIMARY KEY, groups set<bigint>)");
            sim.db.mirror[0] = (struct fgw_migrate_mirror_row){1756300000, true};
        }
        assert_int_equal(sim_once(&sim, &sets.shared, SIM_UP), FGW_MIGRATE_EXIT_DECISION);
        scene_check_reports();
        repair_twice(&sets.shared, &apply_drop);
        if (kind & 1) {
            check_uploads(3);
        }
        scene_check_final(&sets.shared);
        /* and the node keyspace of the same installation */
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)kind + 100);
        scene_legacy(1756300000);
        up_ok(&sets.node);
        scene_check_final(&sets.node);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(row17_dirty_set_by_hand),
        SCENE_TEST(row17_dirty_legacy_with_a_correct_schema),
        SCENE_TEST(row18_dirty_cleared_on_a_half_schema),
        SCENE_TEST(row18_half_of_our_own_schema),
        SCENE_TEST(row19_mirror_edited),
        SCENE_TEST(row19_mirror_of_wrong_types),
        SCENE_TEST(row19_first_contact_with_odd_mirrors),
        SCENE_TEST(row20_evidence_lost),
        SCENE_TEST(row20_rows_lost),
        SCENE_TEST(row21_lock_row_restored),
        SCENE_TEST(row22_table_dropped),
        SCENE_TEST(row22_table_recreated_with_another_key),
        SCENE_TEST(row22_columns),
        SCENE_TEST(row22_clustering_order),
        SCENE_TEST(row23_compose_database),
        SCENE_TEST(row23_repair_killed_anywhere),
        SCENE_TEST(row23_stale_drop),
        SCENE_TEST(row34_stopped_with_a_drop_in_doubt),
        SCENE_TEST(row24_compose_database_with_rows),
        SCENE_TEST(row24_move_killed_anywhere),
        SCENE_TEST(row25_old_go_engine),
        SCENE_TEST(row25_fresh_database_shuts_the_old_engine_out),
        SCENE_TEST(field_reports),
    };
    return cmocka_run_group_tests(tests, scene_setup, scene_teardown);
}
