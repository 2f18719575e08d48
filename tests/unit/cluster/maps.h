/* maps.h: maps for the tests of this folder, made from "zone/host" each. */
#ifndef FGW_TESTS_CLUSTER_MAPS_H
#define FGW_TESTS_CLUSTER_MAPS_H

#include <stdio.h>
#include <stdlib.h>

#include "cluster/cluster_internal.h"

static int maps_by_id(const void *a, const void *b)
{
    return memcmp(((const struct cluster_store *)a)->id, ((const struct cluster_store *)b)->id,
                  FGW_STORAGE_ID_SIZE);
}

/* Stores in the order of `where`. */
static inline void maps_make(struct cluster_map *map, const char *const *where, size_t count)
{
    *map = (struct cluster_map){.version = 1, .store_count = count};
    map->stores = fgw_xcalloc(count + 1, sizeof *map->stores);
    for (size_t i = 0; i < count; i++) {
        struct cluster_store *store = &map->stores[i];
        memset(store->id, (int)(i + 1), sizeof store->id);
        (void)snprintf(store->zone, sizeof store->zone, "%.1s", where[i]);
        (void)snprintf(store->host, sizeof store->host, "%s", where[i] + 2);
        (void)snprintf(store->address, sizeof store->address, "10.0.0.%zu:8079", i);
        store->state = CLUSTER_ACTIVE;
        store->epoch = 1;
        store->said.free_bytes = 1000;
        fgw_buf_init(&store->data, 0);
    }
    qsort(map->stores, count, sizeof *map->stores, maps_by_id);
}

/* A set of two stores with the id 1. */
static inline void maps_add_pair(struct cluster_map *map, uint32_t a, uint32_t b)
{
    map->sets = fgw_xcalloc(2, sizeof *map->sets);
    map->set_count = 1;
    map->sets[0] = (struct cluster_set){.id = 1,
                                        .epoch = 5,
                                        .state = CLUSTER_SET_OPEN,
                                        .count = 2,
                                        .leaving = UINT32_MAX,
                                        .stores = {a, b}};
}

#endif
