/* test_rebalance.c: which memberships move, asked for once and again while they are on their way. */
#include "cmocka_all.h"

#include "maps.h"

enum { SETS = 24, SET_BYTES = 100 };

/* All sets of one copy on store 0; store 1 is empty. */
static void make_lopsided(struct cluster_map *map)
{
    static const char *const WHERE[] = {"a/h1", "a/h2"};
    maps_make(map, WHERE, 2);
    map->sets = fgw_xcalloc(SETS, sizeof *map->sets);
    map->set_count = SETS;
    for (uint32_t i = 0; i < SETS; i++) {
        map->sets[i] = (struct cluster_set){.id = i + 1,
                                            .epoch = 1,
                                            .state = CLUSTER_SET_OPEN,
                                            .count = 1,
                                            .leaving = UINT32_MAX,
                                            .stores = {0}};
    }
    map->stores[0].said.stored_bytes = SETS * SET_BYTES;
    map->stores[1].said.free_bytes = SETS * SET_BYTES + map->stores[0].said.free_bytes;
}

static struct cluster_set *resting_set_of(struct cluster_map *map, uint32_t store)
{
    for (size_t i = 0; i < map->set_count; i++) {
        if (map->sets[i].joining == 0 && map->sets[i].stores[0] == store) {
            return &map->sets[i];
        }
    }
    fail_msg("no set is left");
    return NULL;
}

/* As fgw node rebalance: the moves that it begins. */
static unsigned order(struct cluster_map *map)
{
    struct cluster_load loads[2] = {0};
    unsigned moves = 0;
    uint32_t from;
    uint32_t to;
    cluster_measure(map, loads);
    while (cluster_pick_pair(map, loads, &from, &to)) {
        struct cluster_set *set = resting_set_of(map, from);
        set->stores[1] = to;
        set->joining = 1;
        set->leaving = from;
        cluster_note_move(&loads[from], &loads[to]);
        moves++;
    }
    return moves;
}

static void finish_moves(struct cluster_map *map)
{
    for (size_t i = 0; i < map->set_count; i++) {
        struct cluster_set *set = &map->sets[i];
        if (set->joining == 0) {
            continue;
        }
        struct cluster_beat *left = &map->stores[set->leaving].said;
        struct cluster_beat *joined = &map->stores[set->stores[1]].said;
        left->stored_bytes -= SET_BYTES;
        left->free_bytes += SET_BYTES;
        joined->stored_bytes += SET_BYTES;
        joined->free_bytes -= SET_BYTES;
        set->stores[0] = set->stores[1];
        set->joining = 0;
        set->leaving = UINT32_MAX;
    }
}

static void asking_again_moves_no_more(void **state)
{
    (void)state;
    struct cluster_map map;
    make_lopsided(&map);
    unsigned first = order(&map);
    assert_in_range(first, 1, SETS / 4);
    for (int again = 0; again < 5; again++) {
        assert_int_equal(order(&map), 0);
    }
    cluster_map_deinit(&map);
}

static void rounds_end_balanced(void **state)
{
    (void)state;
    struct cluster_map map;
    unsigned moves = 0;
    make_lopsided(&map);
    for (int round = 0; round < 10; round++) {
        moves += order(&map);
        finish_moves(&map);
    }
    assert_int_equal(order(&map), 0);
    assert_in_range(moves, SETS / 2 - 2, SETS / 2);
    cluster_map_deinit(&map);
}

/* Sixteen copies, as many as FGW_REPLICAS allows: the row has a place for who joins. */
static void the_largest_set_can_be_repaired(void **state)
{
    (void)state;
    struct cluster_set_row row = {.count = 16};
    uint8_t joining[FGW_STORAGE_ID_SIZE] = {17};
    for (unsigned i = 0; i < row.count; i++) {
        memset(row.members[i], (int)i + 1, FGW_STORAGE_ID_SIZE);
    }
    assert_true(cluster_row_start(&row, joining, row.members[0]));
    assert_int_equal(row.joining, 1);
    cluster_row_finish(&row);
    assert_int_equal(row.count, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asking_again_moves_no_more),
        cmocka_unit_test(rounds_end_balanced),
        cmocka_unit_test(the_largest_set_can_be_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
