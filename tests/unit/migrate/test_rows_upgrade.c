/* test_rows_upgrade.c: rows 26 to 38 of spec/migrations.md E3: builds that differ, rolling
 * upgrades, permissions, data steps, signals, commands, start-up. */
#include "scene.h"

#include <stdio.h>

static enum fgw_migrate_exit up(const struct fgw_migrate_set *set)
{
    enum fgw_migrate_exit exit = sim_once(&sim, set, SIM_UP);
    scene_check_reports();
    return exit;
}

static const struct fgw_migrate_options none = {.reason = ""};
static const struct fgw_migrate_options apply = {.apply = true};

static void row26_edited(void **state)
{
    (void)state;
    assert_int_equal(up(&sets.small), 0);
    int ddl = sim.db.ddl_applied;
    /* comments and blanks only */
    assert_int_equal(up(&sets.commented), 0);
    assert_int_equal(sim.db.ddl_applied, ddl);
    /* another text, one statement more, and back */
    assert_int_equal(up(&sets.edited), FGW_MIGRATE_EXIT_DRIFT);
    assert_non_null(sim_finding(sim.procs[0], FGW_MIGRATE_EDITED));
    assert_int_equal(up(&sets.appended), FGW_MIGRATE_EXIT_DRIFT);
    assert_non_null(sim_finding(sim.procs[0], FGW_MIGRATE_EDITED));
    assert_int_equal(sim.db.ddl_applied, ddl);
    assert_int_equal(up(&sets.small), 0);
    scene_check_final(&sets.small);
    /* the way out for the appended one: repair runs it */
    assert_int_equal(scene_command(&sets.appended, SIM_REPAIR, &apply)->exit, 0);
    scene_check_final(&sets.appended);
    /* the build without it meets a journal row it has no statement for */
    assert_int_equal(up(&sets.small), FGW_MIGRATE_EXIT_DRIFT);
    assert_int_equal(scene_command(&sets.small, SIM_REPAIR, &apply)->exit, 0);
    assert_int_equal(up(&sets.small), 0);
}

static void row26_edited_text_with_an_equal_shape_is_recorded_anew(void **state)
{
    (void)state;
    assert_int_equal(up(&sets.small), 0);
    /* the same effect under another hash: as if the journal had been written by an older rule */
    for (int i = 0; i < sim.db.journal_count; i++) {
        sim.db.journal[i].sha[5] = 'f';
        sim.db.journal[i].sha[6] = 'g';
    }
    assert_int_equal(up(&sets.small), FGW_MIGRATE_EXIT_DRIFT);
    int ddl = sim.db.ddl_applied;
    assert_int_equal(scene_command(&sets.small, SIM_REPAIR, &apply)->exit, 0);
    assert_int_equal(sim.db.ddl_applied, ddl);
    scene_check_final(&sets.small);
}

static void row26_unapplied_statement_may_be_corrected(void **state)
{
    (void)state;
    /* alpha with v bigint meets a table with v text: fails; the corrected build goes on */
    sim_cql(&sim, "CREATE TABLE alpha (id text, v text, old text, PRIMARY KEY (id))");
    assert_int_equal(up(&sets.edited), FGW_MIGRATE_EXIT_DECISION);
    assert_int_equal(up(&sets.small), 0);
    scene_check_final(&sets.small);
}

static void row27_out_of_order_and_missing(void **state)
{
    (void)state;
    assert_int_equal(up(&sets.small), 0);
    assert_int_equal(up(&sets.inserted), FGW_MIGRATE_EXIT_DRIFT);
    const struct fgw_migrate_finding *finding = sim_finding(sim.procs[0], FGW_MIGRATE_OUT_OF_ORDER);
    assert_non_null(finding);
    assert_non_null(strstr(finding->step, "shared/20260101120000"));
    assert_string_equal(finding->next, "fgw migrate up --allow-out-of-order --keyspace ks");
    struct sim_proc *proc = scene_command(
        &sets.inserted, SIM_UP, &(struct fgw_migrate_options){.allow_out_of_order = true});
    assert_int_equal(proc->exit, 0);
    scene_check_final(&sets.inserted);
    /* a build without a file that was applied */
    assert_int_equal(up(&sets.gap), FGW_MIGRATE_EXIT_DRIFT);
    assert_non_null(sim_finding(sim.procs[0], FGW_MIGRATE_OUT_OF_ORDER));
}

static void row27_duplicate_version_is_a_build_error(void **state)
{
    (void)state;
    static const char text[] = "CREATE TABLE t (id text PRIMARY KEY)";
    struct fgw_migrate_source sources[] = {
        {.version = 20260101000000, .name = "a", .text = text, .text_len = sizeof text - 1},
        {.version = 20260101000000, .name = "b", .text = text, .text_len = sizeof text - 1}};
    struct fgw_error error;
    fgw_error_init(&error);
    struct fgw_migrate_set set;
    assert_int_not_equal(fgw_migrate_set_build(&sim.arena, "shared", sources, 2, &error, &set),
                         FGW_OK);
    assert_non_null(strstr(fgw_error_message(&error), "duplicate version"));
}

static void row28_schema_newer_or_older(void **state)
{
    (void)state;
    /* newer and compatible: starts, changes nothing */
    assert_int_equal(up(&sets.newer), 0);
    int ddl = sim.db.ddl_applied;
    assert_int_equal(up(&sets.small), 0);
    assert_int_equal(sim.db.ddl_applied, ddl);
    assert_int_equal(sim.procs[0]->report->compat, FGW_MIGRATE_COMPAT_NEWER_COMPATIBLE);
    assert_int_equal(scene_command(&sets.small, SIM_CHECK, &none)->exit, 0);
    assert_int_equal(scene_command(&sets.small, SIM_WAIT, &none)->exit, 0);
    /* newer and incompatible: exit 5, nothing written */
    sim_deinit(&sim);
    sim_init(&sim, 2);
    assert_int_equal(up(&sets.small), 0);
    assert_int_equal(
        scene_command(&sets.contract, SIM_UP, &(struct fgw_migrate_options){.contract = true})
            ->exit,
        0);
    static const enum sim_command commands[] = {SIM_UP, SIM_CHECK, SIM_WAIT, SIM_VERIFY,
                                                SIM_REPAIR};
    for (size_t i = 0; i < 5; i++) {
        struct sim_proc *proc = scene_command(&sets.older, commands[i], &none);
        assert_int_equal(proc->exit, FGW_MIGRATE_EXIT_INCOMPATIBLE);
        assert_int_equal(proc->writes, 0);
        const struct fgw_migrate_finding *finding = sim_finding(proc, FGW_MIGRATE_NEWER);
        assert_non_null(finding);
        assert_non_null(strstr(finding->cause, "20260103000000"));
        assert_non_null(strstr(finding->cause, "20260101000000"));
    }
    /* too old: `off` refuses, `wait` waits to its limit */
    sim_deinit(&sim);
    sim_init(&sim, 3);
    assert_int_equal(up(&sets.older), 0);
    assert_int_equal(scene_command(&sets.small, SIM_CHECK, &none)->exit,
                     FGW_MIGRATE_EXIT_INCOMPATIBLE);
    struct sim_proc *wait = scene_command(&sets.small, SIM_WAIT, &none);
    assert_int_equal(wait->exit, FGW_MIGRATE_EXIT_PENDING);
    assert_true(wait->ended_us - wait->started_us >= UINT64_C(600000000));
    assert_non_null(sim_finding(wait, FGW_MIGRATE_OLDER));
    assert_int_equal(wait->writes, 0);
}

static void row28_compat_states(void **state)
{
    (void)state;
    assert_int_equal(fgw_migrate_compat(1, 0, 2, 3), FGW_MIGRATE_COMPAT_TOO_OLD);
    assert_int_equal(fgw_migrate_compat(2, 0, 2, 3), FGW_MIGRATE_COMPAT_PENDING);
    assert_int_equal(fgw_migrate_compat(3, 0, 2, 3), FGW_MIGRATE_COMPAT_OK);
    assert_int_equal(fgw_migrate_compat(4, 3, 2, 3), FGW_MIGRATE_COMPAT_NEWER_COMPATIBLE);
    assert_int_equal(fgw_migrate_compat(4, 4, 2, 3), FGW_MIGRATE_COMPAT_NEWER_INCOMPATIBLE);
}

static void row29_two_texts_for_one_version(void **state)
{
    (void)state;
    for (int seed = 1; seed <= scene_seeds(60); seed++) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)seed);
        struct sim_proc *a = sim_add(&sim, "a", &sets.small, SIM_UP, sim_below(&sim, 2000));
        struct sim_proc *b = sim_add(&sim, "b", &sets.edited, SIM_UP, sim_below(&sim, 2000));
        struct sim_proc *victim = sim_below(&sim, 2) ? a : b;
        victim->kill_at = sim_below(&sim, 3) ? (int)sim_below(&sim, 500) : -1;
        sim_run(&sim);
        scene_check_reports();
        /* the loser sends nothing: whoever is not first is told so before any DDL of its own */
        if (!a->dead && !b->dead) {
            assert_int_equal((a->exit == 0) + (b->exit == 0), 1);
            struct sim_proc *loser = a->exit == 0 ? b : a;
            assert_int_equal(loser->exit, FGW_MIGRATE_EXIT_DRIFT);
            assert_non_null(sim_finding(loser, FGW_MIGRATE_EDITED));
        }
    }
}

static void row29_intent_of_another_text(void **state)
{
    (void)state;
    struct sim_proc *a = sim_add(&sim, "a", &sets.edited, SIM_UP, 0);
    for (int i = 0; !a->dead && i < 1000; i++) {
        /* killed with the second file's first statement under way */
        sim_run_until(&sim, sim.now_us + 50000);
        if (sim.db.lock.i_version == 20260101000000 && sim.db.lock.i_stmt == 1) {
            a->kill_at = a->sites;
        }
    }
    sim_run(&sim);
    assert_true(a->dead);
    bool made = sim_shape(&sim, "alpha") != NULL;
    sim_forget(&sim);
    int ddl = sim.db.ddl_applied;
    assert_int_equal(up(&sets.small), FGW_MIGRATE_EXIT_DRIFT);
    assert_non_null(sim_finding(sim.procs[0], FGW_MIGRATE_EDITED));
    assert_int_equal(sim.db.ddl_applied, ddl);
    struct sim_proc *repair =
        scene_command(&sets.small, SIM_REPAIR,
                      &(struct fgw_migrate_options){.apply = true, .allow_drop_empty = true});
    assert_int_equal(repair->exit, 0);
    (void)made;
    scene_check_final(&sets.small);
}

static void add_node(const char *name, int64_t knows, int64_t age_ms)
{
    struct fgw_migrate_node_row *row = &sim.db.nodes[sim.db.node_count++];
    *row = (struct fgw_migrate_node_row){.knows = knows};
    (void)snprintf(row->node_id, sizeof row->node_id, "%s", name);
    row->seen_ms = (int64_t)(sim.now_us / 1000) + INT64_C(1800000000000) - age_ms;
}

static void row30_contract_waits_for_nodes(void **state)
{
    (void)state;
    const struct fgw_migrate_options finish = {.contract = true};
    assert_int_equal(up(&sets.contract), 0); /* expand only */
    assert_non_null(sim_shape(&sim, "beta"));
    assert_int_equal(sim.db.state.min_compat, 20260101000000);
    add_node("kuri-1", 20260101000000, 30000);
    add_node("kuri-2", 20260102000000, 1000);
    add_node("kuri-3", 20260101000000, 3600000); /* gone for an hour */
    struct sim_proc *proc = scene_command(&sets.contract, SIM_UP, &finish);
    assert_int_equal(proc->exit, FGW_MIGRATE_EXIT_INCOMPATIBLE);
    const struct fgw_migrate_finding *finding = sim_finding(proc, FGW_MIGRATE_BLOCKED_BY_NODES);
    assert_non_null(finding);
    assert_non_null(strstr(finding->next, "--ignore-nodes kuri-1 "));
    assert_non_null(sim_shape(&sim, "beta"));
    struct sim_proc *plan = scene_command(&sets.contract, SIM_PLAN, &finish);
    assert_int_equal(plan->exit, FGW_MIGRATE_EXIT_INCOMPATIBLE);
    assert_int_equal(plan->writes, 0);
    proc = scene_command(
        &sets.contract, SIM_UP,
        &(struct fgw_migrate_options){.contract = true, .ignore_nodes = "kuri-1, kuri-9"});
    assert_int_equal(proc->exit, 0);
    assert_null(sim_shape(&sim, "beta"));
    assert_null(fgw_migrate_table_find(sim_shape(&sim, "alpha"), "old"));
    assert_int_equal(sim.db.state.min_compat, 20260102000000);
    scene_check_final(&sets.contract);
    /* the old binary is shut out, the one before the contract runs */
    assert_int_equal(up(&sets.older), FGW_MIGRATE_EXIT_INCOMPATIBLE);
    assert_int_equal(scene_command(&sets.small, SIM_CHECK, &none)->exit, 0);
}

static void row30_contract_never_drops_rows(void **state)
{
    (void)state;
    assert_int_equal(up(&sets.contract), 0);
    static const char *const columns[] = {"id", "at"};
    static const char *const values[] = {"1", "2"};
    sim_row(&sim, "beta", 2, columns, values);
    struct sim_proc *proc =
        scene_command(&sets.contract, SIM_UP, &(struct fgw_migrate_options){.contract = true});
    assert_int_equal(proc->exit, FGW_MIGRATE_EXIT_FAILED);
    assert_non_null(strstr(sim_finding(proc, FGW_MIGRATE_STATEMENT_FAILED)->cause, "holds rows"));
    assert_int_equal(sim_table(&sim, "beta")->row_count, 1);
    sim_table(&sim, "beta")->row_count = 0;
    proc = scene_command(&sets.contract, SIM_UP, &(struct fgw_migrate_options){.contract = true});
    assert_int_equal(proc->exit, 0);
    scene_check_final(&sets.contract);
}

static void row30_contract_killed_anywhere(void **state)
{
    (void)state;
    for (int site = 0; site < 420; site += 3) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)site + 1);
        assert_int_equal(up(&sets.contract), 0);
        sim_forget(&sim);
        sim.ddl_late = 200;
        struct sim_proc *victim = sim_add(&sim, "victim", &sets.contract, SIM_UP, 0);
        victim->options.contract = true;
        victim->kill_at = site;
        struct sim_proc *other = sim_add(&sim, "other", &sets.contract, SIM_UP, 100);
        other->options.contract = true;
        sim_run(&sim);
        scene_check_reports();
        scene_calm();
        if (other->exit != 0) {
            struct sim_proc *again = scene_command(&sets.contract, SIM_UP,
                                                   &(struct fgw_migrate_options){.contract = true});
            assert_int_equal(again->exit, 0);
        }
        scene_check_final(&sets.contract);
    }
}

static void row30_rolling(void **state)
{
    (void)state;
    /* half of the nodes old, half new, started and restarted in any order */
    for (int seed = 1; seed <= scene_seeds(30); seed++) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)seed);
        assert_int_equal(up(&sets.older), 0);
        for (int round = 0; round < 3; round++) {
            sim_forget(&sim);
            for (int i = 0; i < 4; i++) {
                bool new = sim_below(&sim, 2) == 0;
                sim_add(&sim, new ? "new" : "old", new ? &sets.small : &sets.older, SIM_UP,
                        sim_below(&sim, 4000));
            }
            sim_run(&sim);
            scene_check_reports();
            for (int i = 0; i < 4; i++) {
                assert_int_equal(sim.procs[i]->exit, 0);
            }
        }
        scene_converge(&sets.small, 1);
        scene_check_final(&sets.small);
    }
}

static void row31_keyspace_and_permissions(void **state)
{
    (void)state;
    sim.db.exists = false;
    assert_int_equal(up(&sets.small), FGW_MIGRATE_EXIT_USAGE);
    assert_string_equal(sim_finding(sim.procs[0], FGW_MIGRATE_KEYSPACE_MISSING)->next,
                        "fgw db-init");
    assert_int_equal(sim.procs[0]->writes, 0);
    struct sim_proc *proc =
        scene_command(&sets.small, SIM_UP, &(struct fgw_migrate_options){.create_keyspace = true});
    assert_int_equal(proc->exit, 0);
    scene_check_final(&sets.small);
    /* wrong role of the keyspace */
    assert_int_equal(up(&sets.node), FGW_MIGRATE_EXIT_USAGE);
    assert_non_null(sim_finding(sim.procs[0], FGW_MIGRATE_KEYSPACE_MISSING));
}

static void row31_denied(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)kind + 1);
        if (kind > 0) {
            sim_add(&sim, "prepare", &sets.small, SIM_UP, 0)->kill_point = FGW_MIGRATE_AT_S0;
            sim_run(&sim);
            sim.now_us += 60000000;
        }
        sim.deny_ddl = kind <= 1;
        sim.deny_control = kind == 2;
        sim.read_only = kind == 3;
        sim_forget(&sim);
        uint64_t before_us = sim.now_us;
        enum fgw_migrate_exit exit = up(&sets.small);
        if (kind == 3) {
            /* the lock cannot be taken by one who may not write */
            assert_true(exit == FGW_MIGRATE_EXIT_LOCKED || exit == FGW_MIGRATE_EXIT_USAGE);
        } else {
            assert_true(exit == FGW_MIGRATE_EXIT_USAGE || exit == FGW_MIGRATE_EXIT_FAILED);
            assert_non_null(sim_finding(sim.procs[0], FGW_MIGRATE_NO_PERMISSION));
        }
        assert_true(sim.now_us - before_us < UINT64_C(60000000)); /* no retry storm */
        scene_calm();
        scene_converge(&sets.small, 1);
        scene_check_final(&sets.small);
    }
}

/* Row 32, the tokenizer, is test_text.c. */

static void row33_data_step_killed(void **state)
{
    (void)state;
    for (int site = 0; site < 500; site += 2) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)site + 1);
        sim.ddl_late = site % 3 == 0 ? 200 : 0;
        sim_add(&sim, "a", &sets.small, SIM_UP, 0)->kill_at = site;
        sim_add(&sim, "b", &sets.small, SIM_UP, 200);
        sim_run(&sim);
        scene_check_reports();
        scene_calm();
        scene_converge(&sets.small, 2);
        assert_int_equal(sim_table(&sim, "alpha")->row_count, 1);
        assert_string_equal(sim_table(&sim, "alpha")->rows[0].cells[1].value, "'x;y'");
        scene_check_final(&sets.small);
    }
}

static void row34_signals(void **state)
{
    (void)state;
    int stopped = 0;
    for (int site = 0; site < 560; site += 3) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)site + 1);
        struct sim_proc *proc = sim_add(&sim, "p", &sets.small, SIM_UP, 0);
        proc->stop_at = site;
        sim_run(&sim);
        scene_check_reports();
        bool fine = proc->exit == FGW_MIGRATE_EXIT_OK || proc->exit == FGW_MIGRATE_EXIT_PENDING;
        assert_true(fine);
        stopped += proc->exit == FGW_MIGRATE_EXIT_PENDING;
        /* released: the next one does not wait for a lease to end */
        uint64_t before_us = sim.now_us;
        scene_converge(&sets.small, 1);
        assert_true(sim.now_us - before_us < UINT64_C(30000000));
        scene_check_final(&sets.small);
    }
    assert_true(stopped > 50);
}

static void row35_unlock(void **state)
{
    (void)state;
    sim.ddl_ms = 100000;
    sim_add(&sim, "prepare", &sets.small, SIM_UP, 0)->kill_point = FGW_MIGRATE_AT_S0;
    sim_run(&sim);
    sim_forget(&sim);
    sim.now_us += 60000000;
    struct sim_proc *holder = sim_add(&sim, "holder", &sets.small, SIM_UP, 0);
    sim_run_until(&sim, sim.now_us + 60000000);
    assert_true(holder->points[FGW_MIGRATE_AT_S4] > 0);
    int64_t epoch = sim.db.lock.epoch;
    struct sim_proc *wrong = sim_add(&sim, "wrong", &sets.small, SIM_UNLOCK, 0);
    wrong->options.epoch = epoch + 5;
    struct sim_proc *polite = sim_add(&sim, "polite", &sets.small, SIM_UNLOCK, 0);
    polite->options.epoch = epoch;
    sim_run_until(&sim, sim.now_us + 20000000);
    assert_true(wrong->over);
    assert_int_equal(wrong->exit, FGW_MIGRATE_EXIT_USAGE);
    assert_true(polite->over);
    assert_int_equal(polite->exit, FGW_MIGRATE_EXIT_LOCKED);
    struct sim_proc *rude = sim_add(&sim, "rude", &sets.small, SIM_UNLOCK, 0);
    rude->options.epoch = epoch;
    rude->options.even_if_alive = true;
    sim_run(&sim);
    scene_check_reports();
    assert_int_equal(rude->exit, 0);
    assert_true(holder->exit == FGW_MIGRATE_EXIT_LOST);
    sim.ddl_ms = 400;
    scene_converge(&sets.small, 1);
    scene_check_final(&sets.small);
    /* a dead holder: no flag needed */
    sim_forget(&sim);
    sim.db.mirror[0].dirty = true;
    sim_add(&sim, "dead", &sets.small, SIM_UP, 0)->kill_point = FGW_MIGRATE_AT_S9;
    sim_run(&sim);
    struct sim_proc *unlock = scene_command(
        &sets.small, SIM_UNLOCK, &(struct fgw_migrate_options){.epoch = sim.db.lock.epoch});
    assert_int_equal(unlock->exit, 0);
    uint64_t before_us = sim.now_us;
    scene_converge(&sets.small, 1);
    assert_true(sim.now_us - before_us < UINT64_C(20000000));
}

/* The holder is fenced in the middle of a statement, and its successor is at the same one before
 * the answer comes: what the successor records stands. */
static void row35_fenced_holder_cannot_overwrite(void **state)
{
    (void)state;
    int lost = 0;
    for (int seed = 1; seed <= scene_seeds(150); seed++) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)seed);
        sim.ddl_ms = 1500;
        struct sim_proc *holder = sim_add(&sim, "holder", &sets.small, SIM_UP, 0);
        while (!holder->over && holder->points[FGW_MIGRATE_AT_S1] < 2) {
            sim_run_until(&sim, sim.now_us + 5000);
        }
        sim_run_until(&sim, sim.now_us + sim_below(&sim, 3000000));
        struct sim_proc *rude = sim_add(&sim, "rude", &sets.small, SIM_UNLOCK, 0);
        rude->options.epoch = sim.db.lock.epoch;
        rude->options.even_if_alive = true;
        struct sim_proc *next = sim_add(&sim, "next", &sets.small, SIM_UP, sim_below(&sim, 100));
        sim_run(&sim);
        scene_check_reports();
        lost += holder->exit == FGW_MIGRATE_EXIT_LOST;
        assert_int_equal(next->exit, 0);
        sim.ddl_ms = 400;
        scene_check_final(&sets.small);
    }
    assert_true(lost > 20);
}

static void row35_force(void **state)
{
    (void)state;
    assert_int_equal(up(&sets.small), 0);
    sim.tampered = true; /* versions may fall here: a person says so */
    struct fgw_migrate_options force = {.version = 4711, .reason = "test"};
    assert_int_equal(scene_command(&sets.small, SIM_FORCE, &force)->exit, FGW_MIGRATE_EXIT_USAGE);
    force.version = 20260101000000;
    force.reason = "";
    assert_int_equal(scene_command(&sets.small, SIM_FORCE, &force)->exit, FGW_MIGRATE_EXIT_USAGE);
    /* the right version passes, a version whose objects are missing is refused without the hash */
    force.reason = "because";
    force.version = 20260102000000;
    assert_int_equal(scene_command(&sets.small, SIM_FORCE, &force)->exit, 0);
    sim_drop(&sim, "alpha");
    struct sim_proc *refused = scene_command(&sets.small, SIM_FORCE, &force);
    assert_int_equal(refused->exit, FGW_MIGRATE_EXIT_DRIFT);
    char hash[FGW_MIGRATE_SHA_MAX];
    (void)snprintf(hash, sizeof hash, "%s", refused->report->catalog_hash);
    force.accept_drift = "s1:0000";
    assert_int_equal(scene_command(&sets.small, SIM_FORCE, &force)->exit, FGW_MIGRATE_EXIT_DRIFT);
    force.accept_drift = hash;
    force.version = 1756300000;
    refused = scene_command(&sets.small, SIM_FORCE, &force);
    assert_int_equal(refused->exit, 0);
    assert_int_equal(sim.db.state.version, 1756300000);
    bool written = false;
    for (int i = 0; i < sim.db.history_count; i++) {
        written = written || (strcmp(sim.db.history[i].event, "force") == 0 &&
                              strcmp(sim.db.history[i].reason, "because") == 0);
    }
    assert_true(written);
    assert_int_equal(up(&sets.small), 0);
    scene_check_final(&sets.small);
}

static void row35_two_repairs_at_once(void **state)
{
    (void)state;
    for (int seed = 1; seed <= scene_seeds(25); seed++) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)seed);
        scene_compose(5);
        scene_upload_rows(5);
        (void)up(&sets.small);
        sim_forget(&sim);
        for (int i = 0; i < 2; i++) {
            struct sim_proc *proc =
                sim_add(&sim, "r", &sets.small, SIM_REPAIR, sim_below(&sim, 500));
            proc->options.apply = proc->options.allow_drop_empty = true;
        }
        sim_run(&sim);
        scene_check_reports();
        assert_int_equal(sim.procs[0]->exit, 0);
        assert_int_equal(sim.procs[1]->exit, 0);
        assert_int_equal(sim_table(&sim, "multipartuploads")->row_count, 5);
        scene_check_final(&sets.small);
    }
}

static void row36_db_init_again_and_again(void **state)
{
    (void)state;
    assert_int_equal(up(&sets.shared), 0);
    sim_forget(&sim);
    int ddl = sim.db.ddl_applied;
    for (int i = 0; i < 12; i++) {
        struct sim_proc *proc = sim_add(&sim, i == 0 ? "db-init" : "node", &sets.shared,
                                        i % 3 == 1 ? SIM_WAIT : SIM_UP, (uint64_t)i % 4);
        proc->options.create_keyspace = i == 0;
    }
    sim_run(&sim);
    scene_check_reports();
    for (int i = 0; i < 12; i++) {
        assert_int_equal(sim.procs[i]->exit, 0);
        assert_int_equal(sim.procs[i]->writes, 0);
    }
    assert_int_equal(sim.db.ddl_applied, ddl);
}

static void row36_db_init_among_waiting_nodes(void **state)
{
    (void)state;
    sim.db.exists = false;
    sim_add(&sim, "db-init", &sets.shared, SIM_UP, 5000)->options.create_keyspace = true;
    for (int i = 0; i < 7; i++) {
        sim_add(&sim, "node", &sets.shared, SIM_WAIT, (uint64_t)i * 100);
    }
    sim_run(&sim);
    scene_check_reports();
    for (int i = 0; i < 8; i++) {
        assert_int_equal(sim.procs[i]->exit, 0);
    }
    scene_check_final(&sets.shared);
}

/* What of row 37 is the engine's: wrong arguments are refused before the database is asked. Log
 * level, ports and several configuration errors at once are src/config's. */
static void row37_refused_before_the_database(void **state)
{
    (void)state;
    struct sim_proc *proc = scene_command(&sets.small, SIM_FORCE,
                                          &(struct fgw_migrate_options){.version = 20260102000000});
    assert_int_equal(proc->exit, FGW_MIGRATE_EXIT_USAGE);
    assert_int_equal(proc->sites, 0);
    assert_int_equal(sim.db.table_count, 0);
}

/* What `docker ps` is made of: not ready with the reason, then ready. */
static void row38_waiting_says_why(void **state)
{
    (void)state;
    struct sim_proc *check = scene_command(&sets.small, SIM_CHECK, &none);
    assert_int_equal(check->exit, FGW_MIGRATE_EXIT_INCOMPATIBLE);
    const struct fgw_migrate_finding *finding = sim_finding(check, FGW_MIGRATE_OLDER);
    assert_non_null(finding);
    assert_string_equal(finding->cause, "have 0, need 20260102000000");
    assert_non_null(strstr(finding->next, "fgw db-init"));
    /* while somebody migrates: the holder is named */
    sim_forget(&sim);
    sim.ddl_ms = 3000;
    struct sim_proc *holder = sim_add(&sim, "kuri-1 pid 7", &sets.small, SIM_UP, 0);
    while (!holder->over && holder->points[FGW_MIGRATE_AT_S4] < 2) {
        sim_run_until(&sim, sim.now_us + 10000);
    }
    struct sim_proc *wait = sim_add(&sim, "wait", &sets.small, SIM_CHECK, 0);
    while (!wait->over) {
        sim_run_until(&sim, sim.now_us + 10000);
    }
    finding = sim_finding(wait, FGW_MIGRATE_OLDER);
    assert_non_null(finding);
    assert_non_null(strstr(finding->holder, "kuri-1 pid 7 (epoch 1), at shared/"));
    sim_run(&sim);
    assert_int_equal(scene_command(&sets.small, SIM_CHECK, &none)->exit, 0);
}

/* E2.11's own example, letter for letter where the spec gives it. */
static void finding_text(void **state)
{
    (void)state;
    scene_compose(7);
    assert_int_equal(sim_once(&sim, &sets.small, SIM_UP), FGW_MIGRATE_EXIT_DECISION);
    const char *text = fgw_migrate_finding_text(
        &sim.arena, sim.procs[0]->report, sim_finding(sim.procs[0], FGW_MIGRATE_SHAPE_CONFLICT));
    assert_string_equal(
        text,
        "FGW-MIG-031 table exists with a different shape\n"
        "  keyspace  ks (set shared)   server 10.0.0.5:9042\n"
        "  step      shared/1756300000 test, statement 1/1, line 1: CREATE TABLE multipartuploads\n"
        "  diff      key: want ((upload_id))  have ((bucket, key), upload_id);"
        " missing: expires_at timestamp, status text\n"
        "  cause     not created by a migration (no journal entry); table has no rows\n"
        "  state     nothing changed; version 0; lock released (epoch 1)\n"
        "  next      fgw migrate repair --apply --allow-drop-empty --keyspace ks\n");
}

static void commands_that_read_never_write(void **state)
{
    (void)state;
    static const enum sim_command commands[] = {SIM_STATUS, SIM_PLAN, SIM_VERIFY, SIM_REPAIR,
                                                SIM_CHECK};
    for (int fixture = 0; fixture < 4; fixture++) {
        sim_deinit(&sim);
        sim_init(&sim, (uint64_t)fixture + 1);
        if (fixture == 1) {
            scene_compose(5);
        } else if (fixture == 2) {
            scene_legacy(1756300000);
        } else if (fixture == 3) {
            assert_int_equal(up(&sets.older), 0);
        }
        for (size_t i = 0; i < 5; i++) {
            struct sim_proc *proc = scene_command(&sets.small, commands[i], &none);
            assert_int_equal(proc->writes, 0);
            assert_int_not_equal(proc->exit, FGW_MIGRATE_EXIT_INTERNAL);
        }
    }
    struct sim_proc *plan = scene_command(&sets.small, SIM_PLAN, &none);
    assert_int_equal(plan->exit, FGW_MIGRATE_EXIT_PENDING);
    assert_int_equal(plan->report->pending_count, 3);
    assert_string_equal(plan->report->pending[0],
                        "shared/20260102000000 test, statement 1/3, line 1: CREATE TABLE beta");
}

static void worst_exit(void **state)
{
    (void)state;
    static const int order[] = {1, 2, 7, 10, 4, 5, 9, 8, 6, 3, 0};
    for (size_t a = 0; a < 11; a++) {
        for (size_t b = a; b < 11; b++) {
            assert_int_equal(
                fgw_migrate_worse((enum fgw_migrate_exit)order[b], (enum fgw_migrate_exit)order[a]),
                order[a]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(row26_edited),
        SCENE_TEST(row26_edited_text_with_an_equal_shape_is_recorded_anew),
        SCENE_TEST(row26_unapplied_statement_may_be_corrected),
        SCENE_TEST(row27_out_of_order_and_missing),
        SCENE_TEST(row27_duplicate_version_is_a_build_error),
        SCENE_TEST(row28_schema_newer_or_older),
        SCENE_TEST(row28_compat_states),
        SCENE_TEST(row29_two_texts_for_one_version),
        SCENE_TEST(row29_intent_of_another_text),
        SCENE_TEST(row30_contract_waits_for_nodes),
        SCENE_TEST(row30_contract_never_drops_rows),
        SCENE_TEST(row30_contract_killed_anywhere),
        SCENE_TEST(row30_rolling),
        SCENE_TEST(row31_keyspace_and_permissions),
        SCENE_TEST(row31_denied),
        SCENE_TEST(row33_data_step_killed),
        SCENE_TEST(row34_signals),
        SCENE_TEST(row35_unlock),
        SCENE_TEST(row35_fenced_holder_cannot_overwrite),
        SCENE_TEST(row35_force),
        SCENE_TEST(row35_two_repairs_at_once),
        SCENE_TEST(row36_db_init_again_and_again),
        SCENE_TEST(row36_db_init_among_waiting_nodes),
        SCENE_TEST(row37_refused_before_the_database),
        SCENE_TEST(row38_waiting_says_why),
        SCENE_TEST(finding_text),
        SCENE_TEST(commands_that_read_never_write),
        SCENE_TEST(worst_exit),
    };
    return cmocka_run_group_tests(tests, scene_setup, scene_teardown);
}
