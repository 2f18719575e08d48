/* test_repair.c: rows of sets, and which step comes next. */
#include "cmocka_all.h"

#include "base/tlv.h"
#include "maps.h"

enum { TAG_DONE = 12 };

static void say_done(struct cluster_store *store, uint64_t set, uint64_t epoch)
{
    uint8_t done[16];
    fgw_put_u64le(done, set);
    fgw_put_u64le(done + 8, epoch);
    fgw_tlv_put(&store->data, TAG_DONE, fgw_bytes(done, sizeof done));
}

static void a_row_is_what_was_written(void **state)
{
    (void)state;
    struct cluster_set_row row = {.count = 2, .joining = 1, .has_leaving = true};
    struct cluster_set_row back;
    struct fgw_buf data;
    fgw_buf_init(&data, 0);
    for (unsigned i = 0; i < 3; i++) {
        memset(row.members[i], (int)i + 1, FGW_STORAGE_ID_SIZE);
    }
    memset(row.leaving, 1, sizeof row.leaving);
    cluster_set_encode(&row, &data);
    fgw_tlv_put(&data, 200, FGW_LIT("later")); /* of a newer version: carried over */
    size_t len = data.len;
    assert_int_equal(cluster_set_decode(fgw_buf_bytes(&data), &back), FGW_OK);
    assert_int_equal(back.count, 2);
    assert_int_equal(back.joining, 1);
    assert_true(back.has_leaving);
    assert_memory_equal(back.members, row.members, sizeof row.members);
    fgw_buf_clear(&data);
    cluster_set_encode(&back, &data);
    assert_int_equal(data.len, len);
    cluster_set_deinit(&back);
    /* critical and unknown */
    fgw_tlv_put(&data, 201, FGW_LIT("x"));
    assert_int_equal(cluster_set_decode(fgw_buf_bytes(&data), &back), FGW_ERR_NEWER_VERSION);
    fgw_buf_deinit(&data);
}

static void broken_rows_are_refused(void **state)
{
    (void)state;
    struct cluster_set_row back;
    struct fgw_buf data;
    uint8_t id[FGW_STORAGE_ID_SIZE] = {1};
    fgw_buf_init(&data, 0);
    assert_int_equal(cluster_set_decode(fgw_buf_bytes(&data), &back), FGW_ERR_CORRUPT);
    fgw_tlv_put(&data, 3, fgw_bytes(id, sizeof id)); /* joining a set of nobody */
    assert_int_equal(cluster_set_decode(fgw_buf_bytes(&data), &back), FGW_ERR_CORRUPT);
    fgw_buf_clear(&data);
    fgw_tlv_put(&data, 1, fgw_bytes(id, 15));
    assert_int_equal(cluster_set_decode(fgw_buf_bytes(&data), &back), FGW_ERR_CORRUPT);
    fgw_buf_clear(&data);
    for (unsigned i = 0; i < FGW_PLACEMENT_MEMBERS_MAX + 1; i++) {
        fgw_tlv_put(&data, 1, fgw_bytes(id, sizeof id));
    }
    assert_int_equal(cluster_set_decode(fgw_buf_bytes(&data), &back), FGW_ERR_CORRUPT);
    assert_int_equal(cluster_set_decode(fgw_bytes(data.ptr, data.len - 1), &back), FGW_ERR_CORRUPT);
    fgw_buf_deinit(&data);
}

static void a_row_goes_through_a_repair(void **state)
{
    (void)state;
    struct cluster_set_row row = {.count = 2};
    uint8_t a[FGW_STORAGE_ID_SIZE];
    uint8_t c[FGW_STORAGE_ID_SIZE];
    memset(row.members[0], 1, sizeof a);
    memset(row.members[1], 2, sizeof a);
    memset(a, 1, sizeof a);
    memset(c, 3, sizeof c);
    assert_true(cluster_row_start(&row, c, a));
    assert_false(cluster_row_start(&row, c, a));
    assert_int_equal(row.count, 2);
    assert_int_equal(row.joining, 1);
    cluster_row_finish(&row);
    assert_int_equal(row.count, 2);
    assert_int_equal(row.joining, 0);
    assert_int_equal(row.members[0][0], 2);
    assert_int_equal(row.members[1][0], 3);
    assert_true(cluster_row_start(&row, a, NULL)); /* one more */
    cluster_row_cancel(&row);
    assert_int_equal(row.count, 2);
    assert_true(cluster_row_start(&row, a, NULL));
    cluster_row_finish(&row);
    assert_int_equal(row.count, 3);
}

static void steps_follow_each_other(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "a/h2", "a/h3"};
    struct cluster_map map;
    maps_make(&map, WHERE, 3);
    maps_add_pair(&map, 0, 1);
    struct cluster_set *set = &map.sets[0];
    assert_int_equal(cluster_next_step(&map, set).kind, CLUSTER_STEP_NONE);
    map.stores[0].state = CLUSTER_AWAY;
    struct cluster_step step = cluster_next_step(&map, set);
    assert_int_equal(step.kind, CLUSTER_STEP_START);
    assert_int_equal(step.leaving, 0);
    assert_int_equal(step.joining, 2);
    set->stores[2] = 2;
    set->joining = 1;
    set->leaving = 0;
    set->epoch = 6;
    assert_int_equal(cluster_next_step(&map, set).kind, CLUSTER_STEP_NONE);
    say_done(&map.stores[1], 1, 5); /* of an epoch before */
    assert_int_equal(cluster_next_step(&map, set).kind, CLUSTER_STEP_NONE);
    say_done(&map.stores[1], 1, 6);
    assert_int_equal(cluster_next_step(&map, set).kind, CLUSTER_STEP_FINISH);
    /* it is back: what it alone has must be copied too */
    map.stores[0].state = CLUSTER_ACTIVE;
    assert_int_equal(cluster_next_step(&map, set).kind, CLUSTER_STEP_NONE);
    say_done(&map.stores[0], 1, 6);
    assert_int_equal(cluster_next_step(&map, set).kind, CLUSTER_STEP_FINISH);
    map.stores[2].state = CLUSTER_AWAY;
    assert_int_equal(cluster_next_step(&map, set).kind, CLUSTER_STEP_CANCEL);
    cluster_map_deinit(&map);
}

static void a_set_made_of_too_few_stores_grows(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "a/h2"};
    struct cluster_map map;
    maps_make(&map, WHERE, 2);
    maps_add_pair(&map, 0, UINT32_MAX);
    map.sets[0].count = 1;
    assert_int_equal(cluster_next_step(&map, &map.sets[0]).kind, CLUSTER_STEP_NONE);
    map.sets[0].wanted = 2;
    struct cluster_step step = cluster_next_step(&map, &map.sets[0]);
    assert_int_equal(step.kind, CLUSTER_STEP_START);
    assert_int_equal(step.joining, 1);
    assert_int_equal(step.leaving, UINT32_MAX);
    map.stores[1].state = CLUSTER_AWAY;
    assert_int_equal(cluster_next_step(&map, &map.sets[0]).kind, CLUSTER_STEP_NONE);
    cluster_map_deinit(&map);
}

static void nobody_left_means_nothing_is_done(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "a/h2", "a/h3"};
    struct cluster_map map;
    maps_make(&map, WHERE, 3);
    maps_add_pair(&map, 0, 1);
    map.stores[0].state = CLUSTER_LOST;
    map.stores[1].state = CLUSTER_AWAY;
    map.sets[0].stores[2] = 2;
    map.sets[0].joining = 1;
    assert_int_equal(cluster_next_step(&map, &map.sets[0]).kind, CLUSTER_STEP_NONE);
    cluster_map_deinit(&map);
}

static void the_best_store_joins(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "b/h2", "b/h3", "a/h1", "a/h4", "a/h5"};
    struct cluster_map map;
    maps_make(&map, WHERE, 6);
    maps_add_pair(&map, 0, 1);
    /* another zone than b's, another host than the one that stays; then the emptier one */
    map.stores[4].said.stored_bytes = 3000;
    map.stores[5].said.stored_bytes = 200;
    assert_int_equal(cluster_candidate(&map, &map.sets[0], 1), 2);
    map.stores[2].state = CLUSTER_DRAINING;
    assert_int_equal(cluster_candidate(&map, &map.sets[0], 1), 5);
    map.stores[5].said.flags = CLUSTER_BEAT_BELOW_RESERVE;
    assert_int_equal(cluster_candidate(&map, &map.sets[0], 1), 4);
    map.stores[4].unreachable = true;
    assert_int_equal(cluster_candidate(&map, &map.sets[0], 1), 3); /* the same host, at last */
    map.stores[3].state = CLUSTER_AWAY;
    assert_int_equal(cluster_candidate(&map, &map.sets[0], 1), UINT32_MAX);
    cluster_map_deinit(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_what_was_written),
        cmocka_unit_test(broken_rows_are_refused),
        cmocka_unit_test(a_row_goes_through_a_repair),
        cmocka_unit_test(steps_follow_each_other),
        cmocka_unit_test(a_set_made_of_too_few_stores_grows),
        cmocka_unit_test(nobody_left_means_nothing_is_done),
        cmocka_unit_test(the_best_store_joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
