/* cql_heads.c: see cql_heads.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "contract/meta/cql_heads.h"
#include "event/fiber.h"
#include "meta/cql/cql_internal.h"

enum { BATCH_ROWS = 100, LOADERS = 8 };

struct job {
    const struct cql_heads *heads;
    struct fgw_cql_statement insert;
    struct fgw_wait loaded;
};

struct loader {
    struct job *job;
    unsigned shard;
    struct fgw_arena arena;
    struct fgw_cql_value (*values)[7];
    struct fgw_cql_write *writes;
    size_t count;
};

size_t cql_heads_key(const struct cql_heads *heads, unsigned long index, char out[CQL_HEADS_KEY_SIZE])
{
    int len = snprintf(out, CQL_HEADS_KEY_SIZE, "group-%06lu/%06lu", index / heads->per_prefix,
                       index % heads->per_prefix);
    return (size_t)len;
}

static void flush(struct loader *loader)
{
    struct fgw_error error;
    fgw_error_init(&error);
    if (loader->count > 0 && fgw_cql_batch(loader->job->heads->keyspace->client, loader->writes,
                                           loader->count, NULL, &error) != FGW_OK) {
        (void)fprintf(stderr, "batch: %s\n", fgw_error_message(&error));
        abort();
    }
    loader->count = 0;
    fgw_arena_reset(&loader->arena);
}

static void add(struct loader *loader, struct fgw_bytes key)
{
    struct fgw_object object = {.key = key,
                                .size = 4096,
                                .mtime_ms = fgw_clock_wall_ms(),
                                .etag = FGW_LIT("d41d8cd98f00b204e9800998ecf8427e")};
    struct fgw_row_state state = {.recent_count = 0};
    struct fgw_id *rev = fgw_arena_alloc(&loader->arena, sizeof *rev);
    struct fgw_cql_value *values = loader->values[loader->count];
    struct fgw_buf row;
    fgw_id_random(rev);
    fgw_id_version(object.mtime_ms, NULL, &object.version_id);
    object.owner_id = object.version_id;
    fgw_buf_init(&row, 0);
    fgw_row_encode_object(&row, &object, &state);
    struct fgw_bytes bytes = fgw_arena_copy(&loader->arena, fgw_buf_bytes(&row));
    fgw_buf_deinit(&row);
    size_t listing = fgw_row_listing_size(bytes);
    values[0] = fgw_cql_int(CQL_LIVE);
    values[1] = cql_id_blob(rev);
    values[2] = fgw_cql_blob(fgw_bytes_sub(bytes, 0, listing));
    values[3] = fgw_cql_blob(fgw_bytes_sub(bytes, listing, SIZE_MAX));
    values[4] = cql_id_uuid(&loader->job->heads->bucket->id);
    values[5] = fgw_cql_int((int32_t)loader->shard);
    values[6] = fgw_cql_blob(fgw_arena_copy(&loader->arena, key));
    loader->writes[loader->count++] =
        (struct fgw_cql_write){&loader->job->insert, values, FGW_COUNT_OF(loader->values[0])};
    if (loader->count == BATCH_ROWS) {
        flush(loader);
    }
}

static void load_shard(void *arg)
{
    struct loader *loader = arg;
    struct job *job = loader->job;
    fgw_arena_init(&loader->arena, 0);
    loader->values = fgw_xcalloc(BATCH_ROWS, sizeof *loader->values);
    loader->writes = fgw_xcalloc(BATCH_ROWS, sizeof *loader->writes);
    for (unsigned long i = 0; i < job->heads->count; i++) {
        char text[CQL_HEADS_KEY_SIZE];
        struct fgw_bytes key = fgw_bytes((const uint8_t *)text, cql_heads_key(job->heads, i, text));
        struct cql_place place = {&job->heads->bucket->id, key};
        if (cql_shard(&place) == (int32_t)loader->shard) {
            add(loader, key);
        }
    }
    flush(loader);
    fgw_arena_deinit(&loader->arena);
    fgw_xfree(loader->values);
    fgw_xfree(loader->writes);
    fgw_wait_signal(&job->loaded);
}

void cql_heads_load(const struct cql_heads *heads)
{
    char text[256];
    struct job job = {.heads = heads};
    unsigned shards = cql_shards(&heads->bucket->id);
    struct loader *loaders = fgw_xcalloc(shards, sizeof *loaders);
    (void)snprintf(text, sizeof text,
                   "INSERT INTO %s.objects (state, rev, listing, data, bucket_id, shard, key)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?)",
                   heads->keyspace->name);
    job.insert = (struct fgw_cql_statement){"load", text, FGW_CQL_WRITE, true};
    for (unsigned done = 0; done < shards;) {
        unsigned some = shards - done < LOADERS ? shards - done : LOADERS;
        fgw_wait_init(&job.loaded, some);
        for (unsigned i = 0; i < some; i++, done++) {
            loaders[done] = (struct loader){.job = &job, .shard = done};
            fgw_fiber_spawn(fgw_loop_current(), load_shard, &loaders[done]);
        }
        fgw_wait_for(&job.loaded);
    }
    fgw_xfree(loaders);
}
