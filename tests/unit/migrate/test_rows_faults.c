/* test_rows_faults.c: rows 1 to 16 of spec/migrations.md E3: crashes, pauses, clocks, partitions,
 * lost and late answers, on the simulated database. */
#include "scene.h"

#include <stdio.h>

/* A run without a fault, to learn how many kill sites it has. */
static int count_sites(const struct fgw_migrate_set *set)
{
    struct sim_proc *proc = sim_add(&sim, "count", set, SIM_UP, 0);
    sim_run(&sim);
    assert_int_equal(proc->exit, 0);
    int sites = proc->sites;
    sim_deinit(&sim);
    return sites;
}

static void restart(uint64_t seed)
{
    sim_init(&sim, seed);
}

/* Control tables first, then the fault. */
static void prepare_control(void)
{
    sim_add(&sim, "prepare", &sets.small, SIM_UP, 0)->kill_point = FGW_MIGRATE_AT_S0;
    sim_run(&sim);
    sim_forget(&sim);
    sim.now_us += 60000000;
}

static void row01_kill_at_every_step(void **state)
{
    (void)state;
    int sites = count_sites(&sets.small);
    for (int site = 0; site < sites; site++) {
        restart((uint64_t)site + 1);
        sim_add(&sim, "victim", &sets.small, SIM_UP, 0)->kill_at = site;
        sim_run(&sim);
        scene_check_reports();
        scene_converge(&sets.small, 1);
        scene_check_final(&sets.small);
        sim_deinit(&sim);
    }
    restart(1);
}

static void row01_kill_at_every_named_point(void **state)
{
    (void)state;
    int hit = 0;
    for (int point = 0; point < FGW_MIGRATE_POINTS; point++) {
        sim_deinit(&sim);
        restart((uint64_t)point + 1);
        struct sim_proc *victim = sim_add(&sim, "victim", &sets.small, SIM_UP, 0);
        victim->kill_point = point;
        sim_run(&sim);
        hit += victim->dead;
        scene_converge(&sets.small, 1);
        scene_check_final(&sets.small);
    }
    /* S0..S11 and the steps of lock, state and release; adoption and moves have tests of their own */
    assert_true(hit >= 21);
}

static void row01_kill_pairs(void **state)
{
    (void)state;
    int sites = count_sites(&sets.small);
    int runs = scene_seeds(600);
    for (int i = 0; i < runs; i++) {
        restart((uint64_t)i + 1);
        sim_add(&sim, "first", &sets.small, SIM_UP, 0)->kill_at =
            (int)sim_below(&sim, (uint64_t)sites);
        sim_add(&sim, "second", &sets.small, SIM_UP, sim_below(&sim, 60000))->kill_at =
            (int)sim_below(&sim, (uint64_t)sites);
        sim_run(&sim);
        scene_check_reports();
        scene_converge(&sets.small, 1);
        scene_check_final(&sets.small);
        sim_deinit(&sim);
    }
    restart(1);
}

static void row02_crash_while_making_control_tables(void **state)
{
    (void)state;
    for (int table = 0; table < 6; table++) {
        for (int after = 0; after < 4; after++) {
            sim_deinit(&sim);
            restart((uint64_t)(table * 4 + after) + 1);
            struct sim_proc *victim = sim_add(&sim, "victim", &sets.small, SIM_UP, 0);
            victim->kill_at = 16 + table * 9 + after * 2;
            struct sim_proc *other = sim_add(&sim, "other", &sets.small, SIM_UP, 500);
            sim_run(&sim);
            scene_check_reports();
            assert_int_equal(other->exit, 0);
            scene_check_final(&sets.small);
        }
    }
}

static void row02_control_table_of_another_shape(void **state)
{
    (void)state;
    sim_cql(&sim, "CREATE TABLE fgw_schema_state (id text PRIMARY KEY, set_name text)");
    assert_int_equal(sim_once(&sim, &sets.small, SIM_UP), FGW_MIGRATE_EXIT_DECISION);
    assert_non_null(sim_finding(sim.procs[0], FGW_MIGRATE_SHAPE_CONFLICT));
    struct sim_proc *repair =
        scene_command(&sets.small, SIM_REPAIR, &(struct fgw_migrate_options){.apply = true});
    assert_int_equal(repair->exit, 0);
    scene_check_final(&sets.small);
}

static void start_many(const struct fgw_migrate_set *set, int count, uint64_t spread_ms)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "p%d", i);
        sim_add(&sim, name, set, SIM_UP, sim_below(&sim, spread_ms + 1));
    }
}

static void all_ready(void)
{
    int workers = 0;
    for (int i = 0; i < sim.proc_count; i++) {
        assert_int_equal(sim.procs[i]->exit, FGW_MIGRATE_EXIT_OK);
        workers += sim.procs[i]->report->applied + sim.procs[i]->report->reconciled > 0;
        assert_null(sim_finding(sim.procs[i], FGW_MIGRATE_STATEMENT_FAILED));
    }
    assert_true(workers <= 1);
}

static void row03_many_start_at_once(void **state)
{
    (void)state;
    static const int counts[] = {2, 8, 32};
    for (int kind = 0; kind < 4; kind++) {
        for (size_t c = 0; c < 3; c++) {
            sim_deinit(&sim);
            restart((uint64_t)kind * 3 + c + 1);
            if (kind == 1) {
                sim_add(&sim, "half", &sets.small, SIM_UP, 0)->kill_point = FGW_MIGRATE_AT_S8;
                sim_run(&sim);
                sim_forget(&sim);
                sim.now_us += 60000000;
            } else if (kind == 2) {
                scene_legacy(1756300000);
            } else if (kind == 3) {
                scene_legacy(1756300000);
                sim_mirror(&sim, 1756300000, true);
            }
            start_many(&sets.small, counts[c], c == 0 ? 0 : 1000);
            sim_run(&sim);
            scene_check_reports();
            all_ready();
            scene_check_final(&sets.small);
        }
    }
}

/* Stops the holder for two leases at every site of its run; somebody else takes over. */
static void row04_holder_stopped_for_two_leases(void **state)
{
    (void)state;
    int sites = count_sites(&sets.small);
    int lost = 0;
    for (int site = 0; site < sites; site += 2) {
        restart((uint64_t)site + 1);
        struct sim_proc *sleeper = sim_add(&sim, "sleeper", &sets.small, SIM_UP, 0);
        sleeper->pause_at = site;
        sleeper->pause_us = 70000000;
        struct sim_proc *other = sim_add(&sim, "other", &sets.small, SIM_UP, 100);
        sim_run(&sim);
        scene_check_reports();
        assert_int_equal(other->exit, FGW_MIGRATE_EXIT_OK);
        assert_true(sleeper->exit == FGW_MIGRATE_EXIT_OK || sleeper->exit == FGW_MIGRATE_EXIT_LOST);
        lost += sleeper->exit == FGW_MIGRATE_EXIT_LOST;
        scene_check_final(&sets.small);
        sim_deinit(&sim);
    }
    assert_true(lost > 10);
    restart(1);
}

static void row05_stale_ddl_after_takeover(void **state)
{
    (void)state;
    int reconciled = 0;
    for (int seed = 1; seed <= scene_seeds(60); seed++) {
        sim_deinit(&sim);
        restart((uint64_t)seed);
        sim.ddl_late = 400;
        sim_add(&sim, "first", &sets.small, SIM_UP, 0)->kill_at = (int)(150 + sim_below(&sim, 250));
        struct sim_proc *second = sim_add(&sim, "second", &sets.small, SIM_UP, 100);
        sim_run(&sim);
        scene_check_reports();
        scene_calm();
        reconciled += second->exit == FGW_MIGRATE_EXIT_OK ? second->report->reconciled : 0;
        scene_converge(&sets.small, 2);
        scene_check_final(&sets.small);
    }
    assert_true(reconciled > 0);
}

static void row06_heartbeat_dead_or_cut(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        sim_deinit(&sim);
        restart((uint64_t)kind + 1);
        sim.ddl_ms = 60000; /* long enough for the lease to end under a statement */
        struct sim_proc *holder = sim_add(&sim, "holder", &sets.small, SIM_UP, 0);
        holder->heartbeat_dead = kind == 0;
        holder->heartbeat_cut = kind == 1;
        sim_run(&sim);
        scene_check_reports();
        sim.ddl_ms = 400;
        if (holder->exit != FGW_MIGRATE_EXIT_OK) {
            assert_int_equal(holder->exit, FGW_MIGRATE_EXIT_LOST);
            assert_non_null(sim_finding(holder, FGW_MIGRATE_LEASE_LOST));
        }
        scene_converge(&sets.small, 2);
        scene_check_final(&sets.small);
    }
}

static void row06_lost_before_the_lease_ends(void **state)
{
    (void)state;
    prepare_control();
    sim.ddl_ms = 170000;
    struct sim_proc *holder = sim_add(&sim, "holder", &sets.small, SIM_UP, 0);
    holder->heartbeat_dead = true;
    struct sim_proc *other = sim_add(&sim, "other", &sets.small, SIM_UP, 2000);
    sim_run(&sim);
    scene_check_reports();
    assert_int_equal(holder->exit, FGW_MIGRATE_EXIT_LOST);
    assert_int_equal(other->exit, FGW_MIGRATE_EXIT_OK);
    sim.ddl_ms = 400;
    scene_check_final(&sets.small);
}

/* However long a statement takes: while heartbeats flow nobody takes over. */
static void row06_long_statements_keep_the_lease(void **state)
{
    (void)state;
    prepare_control();
    sim.ddl_ms = 170000;
    start_many(&sets.small, 3, 1000);
    for (int i = 0; i < 3; i++) {
        sim.procs[i]->options.timing.wait_limit_ms = 7200000;
    }
    sim_run(&sim);
    scene_check_reports();
    all_ready();
    sim.ddl_ms = 400;
    scene_check_final(&sets.small);
}

static void row07_clocks(void **state)
{
    (void)state;
    static const double rates[] = {1.3, 1 / 1.3, 2.0, 0.5, 10.0};
    for (size_t r = 0; r < 5; r++) {
        for (int seed = 0; seed < scene_seeds(6); seed++) {
            sim_deinit(&sim);
            restart((uint64_t)seed * 10 + r + 1);
            for (int i = 0; i < 4; i++) {
                struct sim_proc *proc = sim_add(&sim, "p", &sets.small, SIM_UP, (uint64_t)i * 300);
                proc->wall_offset_ms = (i % 2 == 0 ? 1 : -1) * 3600000;
                proc->clock_rate = i == 1 ? rates[r] : 1.0;
            }
            sim_run(&sim);
            scene_check_reports();
            for (int i = 0; i < 4; i++) {
                /* x10 may cost a takeover, never the result */
                bool allowed = sim.procs[i]->exit == FGW_MIGRATE_EXIT_OK ||
                               (r == 4 && sim.procs[i]->exit == FGW_MIGRATE_EXIT_LOST);
                assert_true(allowed);
            }
            scene_converge(&sets.small, 1);
            scene_check_final(&sets.small);
        }
    }
}

static void row08_suspend(void **state)
{
    (void)state;
    int sites = count_sites(&sets.small);
    for (int site = 0; site < sites; site += 7) {
        restart((uint64_t)site + 1);
        struct sim_proc *proc = sim_add(&sim, "laptop", &sets.small, SIM_UP, 0);
        proc->jump_at = site;
        proc->clock_jump_us = UINT64_C(3600000000);
        sim_run(&sim);
        scene_check_reports();
        /* never goes on as if nothing had happened: either not the holder yet, or lost */
        assert_true(proc->exit == FGW_MIGRATE_EXIT_OK || proc->exit == FGW_MIGRATE_EXIT_LOST ||
                    proc->exit == FGW_MIGRATE_EXIT_UNREACHABLE ||
                    proc->exit == FGW_MIGRATE_EXIT_FAILED || proc->exit == FGW_MIGRATE_EXIT_LOCKED);
        scene_converge(&sets.small, 2);
        scene_check_final(&sets.small);
        sim_deinit(&sim);
    }
    restart(1);
}

static void row09_partitions(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        for (uint64_t from_ms = 1000; from_ms < 9000; from_ms += 700) {
            sim_deinit(&sim);
            restart((uint64_t)kind * 1000 + from_ms);
            struct sim_proc *holder = sim_add(&sim, "holder", &sets.small, SIM_UP, 0);
            struct sim_proc *waiter = sim_add(&sim, "waiter", &sets.small, SIM_UP, 800);
            struct sim_proc *victim = kind == 1 ? waiter : holder;
            uint64_t from_us = sim.now_us + from_ms * 1000;
            if (kind == 2) {
                victim->deaf_from_us = from_us;
                victim->deaf_to_us = from_us + 200000000;
            } else {
                victim->cut_from_us = from_us;
                victim->cut_to_us = from_us + 200000000;
            }
            sim_run(&sim);
            scene_check_reports();
            assert_int_equal((victim == holder ? waiter : holder)->exit, FGW_MIGRATE_EXIT_OK);
            assert_true(victim->exit == FGW_MIGRATE_EXIT_OK ||
                        victim->exit == FGW_MIGRATE_EXIT_LOST ||
                        victim->exit == FGW_MIGRATE_EXIT_UNREACHABLE);
            scene_converge(&sets.small, 1);
            scene_check_final(&sets.small);
        }
    }
}

static void row10_conditional_write_answers(void **state)
{
    (void)state;
    for (int seed = 1; seed <= scene_seeds(80); seed++) {
        sim_deinit(&sim);
        restart((uint64_t)seed);
        int *const faults[] = {&sim.lose_answer, &sim.lose_request, &sim.answer_300,
                               &sim.late_effect};
        *faults[seed % 4] = 120;
        start_many(&sets.small, 3, 3000);
        sim_run(&sim);
        scene_check_reports();
        scene_calm();
        scene_converge(&sets.small, 2);
        scene_check_final(&sets.small);
    }
}

/* A renewal that was refused is sent again, not believed: nobody loses the lease over it. */
static void row10_refused_renewals_keep_the_lease(void **state)
{
    (void)state;
    for (int seed = 1; seed <= scene_seeds(10); seed++) {
        sim_deinit(&sim);
        restart((uint64_t)seed);
        prepare_control();
        sim.refuse = 300;
        sim.ddl_ms = 60000;
        start_many(&sets.small, 3, 1000);
        sim_run(&sim);
        scene_check_reports();
        for (int i = 0; i < 3; i++) {
            assert_int_not_equal(sim.procs[i]->exit, FGW_MIGRATE_EXIT_LOST);
        }
        sim.ddl_ms = 400;
        scene_calm();
        scene_converge(&sets.small, 2);
        scene_check_final(&sets.small);
    }
}

static void row11_ddl_answer_lost(void **state)
{
    (void)state;
    sim.ddl_lose_answer = 800;
    struct sim_proc *proc = sim_add(&sim, "p", &sets.small, SIM_UP, 0);
    sim_run(&sim);
    scene_check_reports();
    if (proc->exit != FGW_MIGRATE_EXIT_OK) { /* all answers of the INSERT, which has no shape */
        assert_int_equal(proc->exit, FGW_MIGRATE_EXIT_FAILED);
        assert_non_null(sim_finding(proc, FGW_MIGRATE_NOT_VISIBLE));
    }
    assert_true(proc->report->reconciled >= 2);
    scene_calm();
    scene_converge(&sets.small, 1);
    scene_check_final(&sets.small);
}

/* Every answer lost, every statement applied: done in one run, each statement sent once. */
static int statements_of(const struct fgw_migrate_set *set)
{
    int count = 0;
    for (size_t i = 0; i < set->file_count; i++) {
        count += set->files[i].step_count;
    }
    return count;
}

static void row11_every_ddl_answer_lost(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 5; seed++) {
        sim_deinit(&sim);
        restart((uint64_t)seed);
        sim.ddl_lose_answer = 1000;
        struct sim_proc *proc = sim_add(&sim, "p", &sets.shared, SIM_UP, 0);
        sim_run(&sim);
        scene_check_reports();
        assert_int_equal(proc->exit, FGW_MIGRATE_EXIT_OK);
        assert_int_equal(proc->report->applied, 0);
        assert_int_equal(proc->report->failed, 0);
        assert_int_equal(proc->report->reconciled, statements_of(&sets.shared));
        scene_check_final(&sets.shared);
    }
}

static void row12_visible_later(void **state)
{
    (void)state;
    static const uint32_t later_ms[] = {1000, 60000, 179000};
    for (size_t i = 0; i < 3; i++) {
        sim_deinit(&sim);
        restart(i + 1);
        sim.ddl_late = 1000;
        sim.ddl_late_ms = later_ms[i];
        struct sim_proc *proc = sim_add(&sim, "p", &sets.older, SIM_UP, 0);
        /* control tables are made first, so that the statements are what is late */
        sim_run(&sim);
        scene_check_reports();
        scene_calm();
        if (proc->exit != FGW_MIGRATE_EXIT_OK) {
            assert_int_equal(proc->exit, FGW_MIGRATE_EXIT_FAILED);
        } else {
            assert_true(proc->report->reconciled > 0);
        }
        scene_converge(&sets.older, 1);
        scene_check_final(&sets.older);
    }
}

static void row13_never_visible(void **state)
{
    (void)state;
    prepare_control();
    sim.never_visible = true;
    struct sim_proc *proc = sim_add(&sim, "p", &sets.small, SIM_UP, 0);
    sim_run(&sim);
    scene_check_reports();
    assert_int_equal(proc->exit, FGW_MIGRATE_EXIT_FAILED);
    const struct fgw_migrate_finding *finding = sim_finding(proc, FGW_MIGRATE_NOT_VISIBLE);
    assert_non_null(finding);
    assert_string_equal(finding->object, "multipartuploads");
    scene_calm();
    scene_converge(&sets.small, 1);
    scene_check_final(&sets.small);
}

static void row13_visible_but_unreadable(void **state)
{
    (void)state;
    prepare_control();
    sim.unreadable = true;
    struct sim_proc *proc = sim_add(&sim, "p", &sets.small, SIM_UP, 0);
    sim_run(&sim);
    scene_check_reports();
    assert_int_equal(proc->exit, FGW_MIGRATE_EXIT_FAILED);
    const struct fgw_migrate_finding *finding = sim_finding(proc, FGW_MIGRATE_NOT_VISIBLE);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, "tablet 7"));
    scene_calm();
    for (int i = 0; i < sim.db.table_count; i++) {
        sim.db.tables[i].readable_us = 0;
    }
    scene_converge(&sets.small, 1);
    scene_check_final(&sets.small);
}

static void row14_stale_catalog(void **state)
{
    (void)state;
    for (int seed = 1; seed <= scene_seeds(40); seed++) {
        sim_deinit(&sim);
        restart((uint64_t)seed);
        sim.stale_ms[seed % 2] = 60000;
        sim.stale_until_us = SIM_NEVER;
        sim.ddl_300 = seed % 3 == 0 ? 300 : 0; /* -3, -303 and their like */
        start_many(&sets.small, 2, 5000);
        sim_run(&sim);
        scene_check_reports();
        for (int i = 0; i < 2; i++) {
            assert_int_equal(sim.procs[i]->exit, FGW_MIGRATE_EXIT_OK);
            assert_null(sim_finding(sim.procs[i], FGW_MIGRATE_SHAPE_CONFLICT));
            assert_null(sim_finding(sim.procs[i], FGW_MIGRATE_NOT_PRESENT));
        }
        scene_calm();
        scene_check_final(&sets.small);
    }
}

/* Cassandra's form of it: what one server has, the other has not, for longer than any wait. */
static void row15_schema_disagreement(void **state)
{
    (void)state;
    prepare_control();
    sim.unreadable = true; /* ID mismatch: there, but not to be read */
    sim.stale_ms[1] = 100000000;
    sim.stale_until_us = sim.now_us + UINT64_C(400000000);
    struct sim_proc *proc = sim_add(&sim, "p", &sets.small, SIM_UP, 0);
    sim_run(&sim);
    scene_check_reports();
    assert_int_equal(proc->exit, FGW_MIGRATE_EXIT_FAILED);
    assert_non_null(sim_finding(proc, FGW_MIGRATE_NOT_VISIBLE));
    scene_calm();
    for (int i = 0; i < sim.db.table_count; i++) {
        sim.db.tables[i].readable_us = 0;
    }
    scene_converge(&sets.small, 1);
    scene_check_final(&sets.small);
}

/* A master failover as a client sees it: refusals, then unknown answers, then nothing for a while. */
static void row16_failover_during_ddl(void **state)
{
    (void)state;
    for (int seed = 1; seed <= scene_seeds(40); seed++) {
        sim_deinit(&sim);
        restart((uint64_t)seed);
        sim.refuse = 200;
        sim.ddl_lose_answer = sim.ddl_late = 100;
        struct sim_proc *proc = sim_add(&sim, "p", &sets.small, SIM_UP, 0);
        uint64_t from_us = sim.now_us + sim_below(&sim, 10000000);
        proc->cut_from_us = from_us;
        proc->cut_to_us = from_us + 15000000;
        sim_run(&sim);
        scene_check_reports();
        scene_calm();
        scene_converge(&sets.small, 2);
        scene_check_final(&sets.small);
    }
}

/* Everything at once, thousands of seeds. */
static void chaos(void **state)
{
    (void)state;
    int runs = scene_seeds(1200);
    for (int seed = 1; seed <= runs; seed++) {
        sim_deinit(&sim);
        restart((uint64_t)seed);
        int *const faults[] = {&sim.lose_answer, &sim.lose_request, &sim.late_effect,
                               &sim.refuse,      &sim.answer_300,   &sim.ddl_lose_answer,
                               &sim.ddl_late,    &sim.ddl_300};
        for (size_t i = 0; i < 8; i++) {
            *faults[i] = sim_below(&sim, 3) == 0 ? (int)sim_below(&sim, i < 5 ? 40 : 200) : 0;
        }
        sim.stale_ms[sim_below(&sim, 2)] = (uint32_t)sim_below(&sim, 3) * 20000;
        sim.stale_until_us = SIM_NEVER;
        sim.ddl_ms = sim_below(&sim, 5) == 0 ? 90000 : 400;
        uint64_t fixture = sim_below(&sim, 4);
        if (fixture == 1) {
            scene_legacy(1756300000);
        } else if (fixture == 2) {
            scene_legacy(1756300000);
            sim_mirror(&sim, 1756300000, true);
        } else if (fixture == 3) {
            scene_legacy(1769890615);
        }
        int count = 1 + (int)sim_below(&sim, 4);
        for (int i = 0; i < count; i++) {
            struct sim_proc *proc = sim_add(&sim, "p", &sets.small, SIM_UP, sim_below(&sim, 20000));
            proc->kill_at = sim_below(&sim, 3) == 0 ? (int)sim_below(&sim, 700) : -1;
            proc->pause_at = sim_below(&sim, 4) == 0 ? (int)sim_below(&sim, 500) : -1;
            proc->pause_us = sim_below(&sim, 120000000);
            proc->clock_rate = sim_below(&sim, 6) == 0 ? 1.25 : 1.0;
            proc->wall_offset_ms = (int64_t)sim_below(&sim, 7200000) - 3600000;
            if (sim_below(&sim, 5) == 0) {
                proc->cut_from_us = sim.now_us + sim_below(&sim, 30000000);
                proc->cut_to_us = proc->cut_from_us + sim_below(&sim, 100000000);
            }
        }
        sim_run(&sim);
        scene_check_reports();
        scene_calm();
        sim.ddl_ms = 400;
        scene_converge(&sets.small, 3);
        scene_check_final(&sets.small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(row01_kill_at_every_step),
        SCENE_TEST(row01_kill_at_every_named_point),
        SCENE_TEST(row01_kill_pairs),
        SCENE_TEST(row02_crash_while_making_control_tables),
        SCENE_TEST(row02_control_table_of_another_shape),
        SCENE_TEST(row03_many_start_at_once),
        SCENE_TEST(row04_holder_stopped_for_two_leases),
        SCENE_TEST(row05_stale_ddl_after_takeover),
        SCENE_TEST(row06_heartbeat_dead_or_cut),
        SCENE_TEST(row06_lost_before_the_lease_ends),
        SCENE_TEST(row06_long_statements_keep_the_lease),
        SCENE_TEST(row07_clocks),
        SCENE_TEST(row08_suspend),
        SCENE_TEST(row09_partitions),
        SCENE_TEST(row10_conditional_write_answers),
        SCENE_TEST(row10_refused_renewals_keep_the_lease),
        SCENE_TEST(row11_ddl_answer_lost),
        SCENE_TEST(row11_every_ddl_answer_lost),
        SCENE_TEST(row12_visible_later),
        SCENE_TEST(row13_never_visible),
        SCENE_TEST(row13_visible_but_unreadable),
        SCENE_TEST(row14_stale_catalog),
        SCENE_TEST(row15_schema_disagreement),
        SCENE_TEST(row16_failover_during_ddl),
        SCENE_TEST(chaos),
    };
    return cmocka_run_group_tests(tests, scene_setup, scene_teardown);
}
