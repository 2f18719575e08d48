/* test_placement.c: planned sets (domains, stability, names) and the choice among them. */
#include "cmocka_all.h"

#include "maps.h"

static void take_plan(struct cluster_map *map, unsigned replicas)
{
    struct cluster_planned *planned;
    size_t count;
    cluster_plan_sets(map, replicas, &planned, &count);
    map->sets = fgw_xcalloc(count + 1, sizeof *map->sets);
    map->set_count = count;
    for (size_t i = 0; i < count; i++) {
        map->sets[i] = (struct cluster_set){
            .id = planned[i].id, .epoch = 1, .state = CLUSTER_SET_OPEN, .count = planned[i].count};
        memcpy(map->sets[i].stores, planned[i].stores, sizeof planned[i].stores);
        assert_true(planned[i].id != 0 && planned[i].id <= INT64_MAX);
        assert_true(i == 0 || planned[i - 1].id < planned[i].id);
    }
    fgw_xfree(planned);
}

static unsigned wanted_sets(const struct cluster_map *map, unsigned replicas)
{
    struct cluster_planned *planned;
    size_t count;
    unsigned wanted = 0;
    cluster_plan_sets(map, replicas, &planned, &count);
    for (size_t i = 0; i < count; i++) {
        wanted += planned[i].wanted;
    }
    fgw_xfree(planned);
    return wanted;
}

static void further_sets_of_the_same_stores_have_ids_of_their_own(void **state)
{
    (void)state;
    uint64_t seen[100];
    for (unsigned i = 0; i < 100; i++) {
        seen[i] = cluster_set_id(77, i);
        assert_true(seen[i] != 0 && seen[i] <= INT64_MAX);
        for (unsigned k = 0; k < i; k++) {
            assert_true(seen[k] != seen[i]);
        }
    }
    assert_true(seen[0] == 77);
}

static void few_stores_make_small_sets(void **state)
{
    (void)state;
    static const char *const ONE[] = {"a/h1"};
    static const char *const THREE[] = {"a/h1", "a/h2", "a/h3"};
    struct cluster_map map;
    maps_make(&map, ONE, 0);
    take_plan(&map, 2);
    assert_int_equal(map.set_count, 0);
    cluster_map_deinit(&map);
    maps_make(&map, ONE, 1);
    take_plan(&map, 2);
    assert_int_equal(map.set_count, 1);
    assert_int_equal(map.sets[0].count, 1);
    cluster_map_deinit(&map);
    maps_make(&map, THREE, 3);
    take_plan(&map, 2);
    assert_int_equal(map.set_count, 3); /* every pair, several sets each */
    assert_int_equal(wanted_sets(&map, 2), 3 * CLUSTER_SETS_PER_STORE / 2);
    assert_int_equal(wanted_sets(&map, 1), 3 * CLUSTER_SETS_PER_STORE);
    cluster_map_deinit(&map);
}

/* What repair makes a set grow to: a set that a bucket asked for stays as it was made. */
static void each_size_keeps_its_number_of_members(void **state)
{
    (void)state;
    static const char *const THREE[] = {"a/h1", "a/h2", "a/h3"};
    struct cluster_map map;
    struct cluster_planned *planned;
    size_t count;
    unsigned of_size[4] = {0};
    maps_make(&map, THREE, 3);
    cluster_plan_all(&map, 2, 1u << 1 | 1u << 3, &planned, &count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(planned[i].replicas, planned[i].count);
        of_size[planned[i].count]++;
    }
    fgw_xfree(planned);
    assert_true(of_size[1] > 0 && of_size[2] > 0 && of_size[3] > 0);
    map.store_count = 1; /* fewer stores than copies: the set is to grow */
    cluster_plan_all(&map, 2, 0, &planned, &count);
    assert_int_equal(count, 1);
    assert_int_equal(planned[0].count, 1);
    assert_int_equal(planned[0].replicas, 2);
    fgw_xfree(planned);
    cluster_map_deinit(&map);
}

static void members_are_in_different_domains(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "a/h1", "a/h2", "b/h3", "b/h3", "b/h4", "c/h5"};
    struct cluster_map map;
    maps_make(&map, WHERE, 7);
    take_plan(&map, 3);
    assert_true(map.set_count > 6);
    for (size_t i = 0; i < map.set_count; i++) {
        const struct cluster_set *set = &map.sets[i];
        assert_int_equal(set->count, 3);
        for (unsigned k = 0; k < 3; k++) {
            for (unsigned m = 0; m < k; m++) {
                assert_true(set->stores[k] != set->stores[m]);
                assert_string_not_equal(map.stores[set->stores[k]].zone,
                                        map.stores[set->stores[m]].zone);
            }
        }
    }
    cluster_map_deinit(&map);
    /* one zone: hosts; a host twice only when there is no other */
    static const char *const HOSTS[] = {"a/h1", "a/h1", "a/h2"};
    maps_make(&map, HOSTS, 3);
    take_plan(&map, 2);
    for (size_t i = 0; i < map.set_count; i++) {
        const struct cluster_set *set = &map.sets[i];
        assert_string_not_equal(map.stores[set->stores[0]].host, map.stores[set->stores[1]].host);
    }
    cluster_map_deinit(&map);
}

static bool has_set(const struct cluster_map *map, uint64_t id)
{
    return cluster_map_set(map, id) != NULL;
}

static void every_store_is_used_and_a_new_one_moves_little(void **state)
{
    (void)state;
    const char *where[12];
    char texts[12][8];
    struct cluster_map map;
    struct cluster_map more;
    unsigned uses[12] = {0};
    size_t kept = 0;
    for (unsigned i = 0; i < 12; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "a/h%u", i);
        where[i] = texts[i];
    }
    maps_make(&map, where, 11);
    take_plan(&map, 2);
    for (size_t i = 0; i < map.set_count; i++) {
        uses[map.sets[i].stores[0]]++;
        uses[map.sets[i].stores[1]]++;
    }
    for (unsigned i = 0; i < 11; i++) {
        assert_true(uses[i] >= 4);
    }
    maps_make(&more, where, 12);
    take_plan(&more, 2);
    for (size_t i = 0; i < map.set_count; i++) {
        kept += has_set(&more, map.sets[i].id);
    }
    assert_true(kept * 2 > map.set_count);
    cluster_map_deinit(&map);
    cluster_map_deinit(&more);
}

/* -- choosing ------------------------------------------------------------------------------------ */

static struct fgw_cluster *make_cluster(const char *const *where, size_t count, unsigned replicas)
{
    struct fgw_cluster_options options = {.keyspace = "k", .replicas = replicas};
    struct fgw_cluster *cluster = fgw_cluster_new(&options);
    maps_make(&cluster->guarded.map, where, count);
    take_plan(&cluster->guarded.map, replicas);
    return cluster;
}

static void suspects_and_full_stores_come_last(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "a/h2", "a/h3"};
    struct fgw_cluster *cluster = make_cluster(WHERE, 3, 2);
    const struct fgw_placement *placement = fgw_cluster_placement(cluster);
    struct fgw_placement_set set;
    struct fgw_error error = {0};
    const struct cluster_store *bad = &cluster->guarded.map.stores[1];
    placement->report(placement->context, bad->id, FGW_PLACEMENT_FAILED, NULL);
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(placement->choose(placement->context, 0, NULL, 0, &set, &error), FGW_OK);
        assert_int_equal(set.count, 2);
        assert_int_equal(set.needed, 2);
        assert_memory_not_equal(set.members[0].store_id, bad->id, FGW_STORAGE_ID_SIZE);
        assert_memory_not_equal(set.members[1].store_id, bad->id, FGW_STORAGE_ID_SIZE);
    }
    /* the only one without it is to be avoided: then with it */
    uint64_t avoid = set.id;
    assert_int_equal(placement->choose(placement->context, 0, &avoid, 1, &set, &error), FGW_OK);
    assert_int_not_equal(set.id, avoid);
    assert_true(set.members[0].suspect || set.members[1].suspect);
    placement->report(placement->context, bad->id, FGW_PLACEMENT_GOOD, NULL);
    assert_int_equal(placement->resolve(placement->context, set.id, &set), FGW_OK);
    assert_false(set.members[0].suspect || set.members[1].suspect);
    assert_int_equal(placement->resolve(placement->context, 12345, &set), FGW_ERR_NOT_FOUND);
    fgw_cluster_free(cluster);
}

static void few_stores_need_one_copy(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "a/h2"};
    struct fgw_cluster *cluster = make_cluster(WHERE, 2, 2);
    const struct fgw_placement *placement = fgw_cluster_placement(cluster);
    struct fgw_placement_set set;
    struct fgw_error error = {0};
    assert_int_equal(placement->choose(placement->context, 0, NULL, 0, &set, &error), FGW_OK);
    assert_int_equal(set.count, 2);
    assert_int_equal(set.needed, 1);
    /* three wanted, two there */
    assert_int_equal(placement->choose(placement->context, 3, NULL, 0, &set, &error), FGW_OK);
    assert_int_equal(set.count, 2);
    /* a closed set takes nothing new */
    cluster->guarded.map.sets[0].state = CLUSTER_SET_CLOSED;
    assert_int_equal(placement->choose(placement->context, 2, NULL, 0, &set, &error),
                     FGW_ERR_UNAVAILABLE);
    cluster->guarded.map.sets[0].state = CLUSTER_SET_OPEN;
    /* a store that is lost takes its sets out */
    cluster->guarded.map.stores[0].state = CLUSTER_LOST;
    assert_int_equal(placement->choose(placement->context, 2, NULL, 0, &set, &error),
                     FGW_ERR_UNAVAILABLE);
    fgw_cluster_free(cluster);
}

/* Sets of one store are left from when there was one: a single copy does not acknowledge then. */
static void a_set_that_cannot_acknowledge_is_not_chosen(void **state)
{
    (void)state;
    static const char *const WHERE[] = {"a/h1", "a/h2", "a/h3"};
    struct fgw_cluster *cluster = make_cluster(WHERE, 3, 1);
    const struct fgw_placement *placement = fgw_cluster_placement(cluster);
    struct fgw_placement_set set;
    struct fgw_error error = {0};
    assert_int_equal(placement->choose(placement->context, 0, NULL, 0, &set, &error), FGW_OK);
    assert_int_equal(set.needed, 1);
    cluster->options.replicas = 2;
    assert_int_equal(placement->choose(placement->context, 0, NULL, 0, &set, &error),
                     FGW_ERR_UNAVAILABLE);
    assert_non_null(strstr(error.message, "at least 2 stores"));
    assert_int_equal(placement->choose(placement->context, 1, NULL, 0, &set, &error), FGW_OK);
    assert_int_equal(set.count, 1);
    assert_int_equal(set.needed, 1);
    /* until the sets of two are made */
    fgw_cluster_free(cluster);
    cluster = make_cluster(WHERE, 3, 2);
    cluster->options.min_replicas = 3;
    placement = fgw_cluster_placement(cluster);
    assert_int_equal(placement->choose(placement->context, 0, NULL, 0, &set, &error),
                     FGW_ERR_UNAVAILABLE);
    assert_int_equal(placement->choose(placement->context, 2, NULL, 0, &set, &error), FGW_OK);
    assert_int_equal(set.needed, 2);
    fgw_cluster_free(cluster);
}

static void addresses_of_urls(void **state)
{
    (void)state;
    char out[FGW_PLACEMENT_ADDRESS_SIZE];
    cluster_address_of_url(FGW_LIT("http://10.0.0.1:8079"), out);
    assert_string_equal(out, "10.0.0.1:8079");
    cluster_address_of_url(FGW_LIT("http://[::1]:8079/path"), out);
    assert_string_equal(out, "[::1]:8079");
    cluster_address_of_url(FGW_LIT("10.0.0.1:8079"), out);
    assert_string_equal(out, "");
    cluster_address_of_url(fgw_bytes(NULL, 0), out);
    assert_string_equal(out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_stores_make_small_sets),
        cmocka_unit_test(further_sets_of_the_same_stores_have_ids_of_their_own),
        cmocka_unit_test(each_size_keeps_its_number_of_members),
        cmocka_unit_test(members_are_in_different_domains),
        cmocka_unit_test(every_store_is_used_and_a_new_one_moves_little),
        cmocka_unit_test(suspects_and_full_stores_come_last),
        cmocka_unit_test(few_stores_need_one_copy),
        cmocka_unit_test(a_set_that_cannot_acknowledge_is_not_chosen),
        cmocka_unit_test(addresses_of_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
