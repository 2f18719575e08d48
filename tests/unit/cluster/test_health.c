/* test_health.c: who counts as away, and what holds the declaration up. */
#include "cmocka_all.h"

#include "base/tlv.h"
#include "maps.h"

enum { NOW = 1000000, TAG_UNREACHABLE = 10 };

/* Store `from` says that it does not reach `other`. */
static void say(struct cluster_map *map, size_t from, size_t other)
{
    fgw_tlv_put(&map->stores[from].data, TAG_UNREACHABLE,
                fgw_bytes(map->stores[other].id, FGW_STORAGE_ID_SIZE));
}

static void beat_all(struct cluster_map *map)
{
    for (size_t i = 0; i < map->store_count; i++) {
        map->stores[i].beat_changed_ms = NOW - 1000;
    }
}

static void one_zone_needs_two_processes_on_two_hosts(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "a/h2", "a/h2", "a/h3"};
    struct cluster_map map;
    maps_make(&map, WHERE, 4);
    beat_all(&map);
    assert_false(cluster_witnessed(&map, 0, NOW));
    say(&map, 1, 0);
    assert_false(cluster_witnessed(&map, 0, NOW));
    say(&map, 2, 0); /* the same host */
    assert_false(cluster_witnessed(&map, 0, NOW));
    say(&map, 3, 0);
    assert_true(cluster_witnessed(&map, 0, NOW));
    /* what a store said that is silent itself counts no more */
    map.stores[3].beat_changed_ms = NOW - CLUSTER_FRESH_MS;
    map.stores[1].beat_changed_ms = NOW - CLUSTER_FRESH_MS;
    assert_false(cluster_witnessed(&map, 0, NOW));
    cluster_map_deinit(&map);
}

static void one_host_needs_two_processes(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "a/h1", "a/h1"};
    struct cluster_map map;
    maps_make(&map, WHERE, 3);
    beat_all(&map);
    say(&map, 1, 0);
    assert_false(cluster_witnessed(&map, 0, NOW));
    say(&map, 2, 0);
    assert_true(cluster_witnessed(&map, 0, NOW));
    cluster_map_deinit(&map);
}

static void several_zones_need_two_zones(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "a/h2", "a/h3", "b/h4"};
    struct cluster_map map;
    maps_make(&map, WHERE, 4);
    beat_all(&map);
    say(&map, 1, 0);
    say(&map, 2, 0);
    assert_false(cluster_witnessed(&map, 0, NOW));
    say(&map, 3, 0);
    assert_true(cluster_witnessed(&map, 0, NOW));
    /* seen from a there is one other zone only: two processes of it */
    bool before = cluster_witnessed(&map, 3, NOW);
    assert_false(before);
    say(&map, 0, 3);
    say(&map, 1, 3);
    assert_true(cluster_witnessed(&map, 3, NOW));
    cluster_map_deinit(&map);
}

static bool too_many(const char *const *where, size_t count, const bool *down)
{
    char why[CLUSTER_WHY_SIZE] = "";
    struct cluster_map map;
    maps_make(&map, where, count);
    bool held = cluster_too_many_down(&map, down, why, sizeof why);
    assert_true(held == (why[0] != '\0'));
    cluster_map_deinit(&map);
    return held;
}

static void two_of_three_down_hold_repair_up(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "a/h2", "a/h3"};
    assert_false(too_many(WHERE, 3, (bool[]){false, false, false}));
    assert_false(too_many(WHERE, 3, (bool[]){true, false, false}));
    assert_true(too_many(WHERE, 3, (bool[]){true, true, false}));
}

static void a_tenth_may_be_down(void **state)
{
    (void)state;
    const char *where[30];
    bool down[30] = {true, true, true};
    for (size_t i = 0; i < 30; i++) {
        where[i] = "a/h";
    }
    assert_false(too_many(where, 30, down));
    down[3] = true;
    assert_true(too_many(where, 30, down));
}

static void a_zone_counts_as_one_where_there_are_three(void **state)
{
    (void)state;
    static const char *const THREE[] = {"a/h1", "a/h2", "b/h3", "b/h4", "c/h5", "c/h6"};
    static const char *const TWO[] = {"a/h1", "a/h2", "b/h3", "b/h4"};
    assert_false(too_many(THREE, 6, (bool[]){true, true, false, false, false, false}));
    assert_true(too_many(THREE, 6, (bool[]){true, false, true, false, false, false}));
    assert_true(too_many(THREE, 6, (bool[]){true, true, true, true, false, false}));
    assert_true(too_many(TWO, 4, (bool[]){true, true, false, false}));
    static const char *const SINGLE[] = {"a/h1", "b/h2", "c/h3"};
    assert_true(too_many(SINGLE, 3, (bool[]){true, true, false}));
}

static void stores_that_are_repaired_no_longer_count(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "a/h2", "a/h3", "a/h4"};
    char why[CLUSTER_WHY_SIZE] = "";
    struct cluster_map map;
    bool down[] = {true, true, false, false};
    maps_make(&map, WHERE, 4);
    maps_add_pair(&map, 0, 2);
    map.stores[0].state = CLUSTER_AWAY;
    assert_true(cluster_too_many_down(&map, down, why, sizeof why));
    map.sets[0].stores[0] = 3; /* its copies are made */
    assert_false(cluster_too_many_down(&map, down, why, sizeof why));
    cluster_map_deinit(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_zone_needs_two_processes_on_two_hosts),
        cmocka_unit_test(one_host_needs_two_processes),
        cmocka_unit_test(several_zones_need_two_zones),
        cmocka_unit_test(two_of_three_down_hold_repair_up),
        cmocka_unit_test(a_tenth_may_be_down),
        cmocka_unit_test(a_zone_counts_as_one_where_there_are_three),
        cmocka_unit_test(stores_that_are_repaired_no_longer_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
