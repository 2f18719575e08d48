#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

static struct sim sim;
static struct fgw_arena arena;
static struct fgw_migrate_set shared;

static void first(void **state)
{
    (void)state;
    sim_init(&sim, 1);
    sim.verbose = true;
    struct sim_proc *p = sim_add(&sim, "a", &shared, SIM_UP, 0);
    sim_run(&sim);
    for (size_t i = 0; i < p->report->finding_count; i++) printf("%s", fgw_migrate_finding_text(&arena, p->report, &p->report->findings[i]));
    printf("exit %d sites %d\n", p->exit, p->sites);
    assert_int_equal(p->exit, 0);
    assert_int_equal(sim_once(&sim, &shared, SIM_UP), 0);
    printf("again sites %d writes %d\n", sim.procs[0]->sites, sim.procs[0]->writes);
    sim_deinit(&sim);
}

int main(void)
{
    fgw_arena_init(&arena, 0);
    size_t count;
    const struct fgw_migrate_source *s = fgw_migrate_embedded("shared", &count);
    struct fgw_error error;
    fgw_error_init(&error);
    if (fgw_migrate_set_build(&arena, "shared", s, count, &error, &shared) != FGW_OK) { puts(error.message); return 1; }
    const struct CMUnitTest tests[] = {cmocka_unit_test(first)};
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    fgw_arena_deinit(&arena);
    return r;
}
