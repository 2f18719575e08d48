/* import.c: see import.h. Rows of a page are worked off by some fibers side by side, so that they
 * share the store's syncs; the next page is asked for when all are done. */
#include "import/import.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "import/legacy.h"
#include "import/tree.h"

enum {
    PROGRESS_MS = 10000,
    FIBERS = 16,
    POOL_THREADS = 4,
    BUCKET_NAME_MIN = 3,
    BUCKET_NAME_MAX = 63
};

struct known_bucket {
    struct known_bucket *next;
    struct fgw_bucket bucket;
};

struct import {
    const struct fgw_import_options *options;
    struct fgw_import_counts *counts;
    struct fgw_car_set *cars;
    struct fgw_pool *pool;
    struct fgw_arena arena; /* buckets */
    struct known_bucket *buckets;
    const struct fgw_legacy_row *rows; /* the page being worked off */
    size_t row_count;
    size_t next_row;
    struct fgw_wait workers;
    enum fgw_err stop; /* what ends the import as a whole */
    struct fgw_error stop_error;
};

/* One object on its way. */
struct object {
    struct import *import;
    const struct fgw_legacy_row *row;
    struct fgw_arena arena;
    struct fgw_error error;
    struct fgw_cid_view cid;
    uint8_t cid_bytes[FGW_CID_ENCODED_MAX];
    const struct fgw_bucket *bucket;
    struct fgw_digest md5;
    struct fgw_blob_stage *stage; /* NULL in a dry run */
};

enum outcome { IMPORTED, PRESENT, KEPT, EXPIRED, PASSED_OVER, FAILED };

static void report(struct import *import, const struct fgw_legacy_row *row, const char *message)
{
    struct fgw_import_problem problem = {.message = message};
    if (row != NULL) {
        problem.bucket = row->bucket;
        problem.key = row->key;
        problem.cid = row->cid;
    }
    import->options->on_problem(import->options->context, &problem);
}

/* -- buckets ------------------------------------------------------------------------------------- */

static const struct fgw_bucket *known(const struct import *import, struct fgw_bytes name)
{
    for (const struct known_bucket *at = import->buckets; at != NULL; at = at->next) {
        if (fgw_bytes_eq(at->bucket.name, name)) {
            return &at->bucket;
        }
    }
    return NULL;
}

static enum fgw_err get_or_make(struct import *import, struct fgw_bytes name,
                                struct fgw_bucket *out_bucket, struct fgw_error *error)
{
    struct fgw_meta *meta = import->options->meta;
    enum fgw_err err = meta->ops->bucket_get(meta, &import->arena, name, true, out_bucket, error);
    if (err != FGW_ERR_NO_SUCH_BUCKET) {
        return err;
    }
    struct fgw_bucket wanted = {.name = name,
                                .owner_id = import->options->owner_id,
                                .owner_name = FGW_LIT("root"),
                                .region = fgw_bytes_str(import->options->region)};
    fgw_error_init(error);
    err = meta->ops->bucket_create(meta, &import->arena, &wanted, out_bucket, error);
    import->counts->buckets_made += err == FGW_OK;
    return err == FGW_ERR_EXISTS ? FGW_OK : err; /* another fiber was faster */
}

static enum fgw_err find_bucket(struct object *object)
{
    struct import *import = object->import;
    struct fgw_bytes name = fgw_arena_copy(&import->arena, object->row->bucket);
    object->bucket = known(import, name);
    if (object->bucket != NULL) {
        return FGW_OK;
    }
    struct known_bucket *fresh = fgw_arena_zalloc(&import->arena, sizeof *fresh);
    enum fgw_err err = get_or_make(import, name, &fresh->bucket, &object->error);
    if (err == FGW_OK) {
        fresh->next = import->buckets;
        import->buckets = fresh;
        object->bucket = &fresh->bucket;
    }
    return err;
}

/* -- what is there already ----------------------------------------------------------------------- */

static bool has_old_cid(const struct fgw_object *there, struct fgw_bytes cid)
{
    for (size_t i = 0; i < there->header_count; i++) {
        if (fgw_bytes_eq_str(there->headers[i].name, FGW_IMPORT_CID_HEADER)) {
            return fgw_bytes_eq(there->headers[i].value, cid);
        }
    }
    return false;
}

static bool same_root(const struct object *object, const struct fgw_cid *root)
{
    return object->cid.hash == FGW_MULTIHASH_SHA2_256 &&
           memcmp(fgw_cid_digest(root), object->cid.digest.ptr, FGW_SHA256_SIZE) == 0;
}

/* NO_SUCH_KEY: it is to be written. */
static enum fgw_err look(struct object *object, enum outcome *out_outcome)
{
    struct fgw_meta *meta = object->import->options->meta;
    struct fgw_version latest = {.kind = FGW_VERSION_LATEST};
    struct fgw_object there;
    enum fgw_err err = meta->ops->object_get(meta, &object->arena, object->bucket, object->row->key,
                                             latest, &there, &object->error);
    if (err == FGW_OK) {
        bool same = !there.delete_marker && ((there.has_cid && same_root(object, &there.cid)) ||
                                             has_old_cid(&there, object->row->cid));
        *out_outcome = same ? PRESENT : KEPT;
    }
    return err;
}

/* -- reading and writing ------------------------------------------------------------------------- */

static enum fgw_err take_bytes(void *context, struct fgw_bytes bytes)
{
    struct object *object = context;
    fgw_digest_update(&object->md5, bytes);
    return object->stage == NULL ? FGW_OK : fgw_blob_stage_write(object->stage, bytes);
}

static enum fgw_err read_tree(struct object *object)
{
    uint64_t size = (uint64_t)object->row->size;
    struct fgw_tree tree = {.cars = object->import->cars,
                            .pool = object->import->pool,
                            .limit = size,
                            .sink = take_bytes,
                            .context = object};
    fgw_digest_begin(&object->md5, FGW_DIGEST_MD5);
    enum fgw_err err = fgw_tree_read(&tree, &object->cid, &object->error);
    object->import->counts->blocks += tree.blocks;
    if (err == FGW_OK && tree.bytes != size) {
        err = fgw_error_set(&object->error, FGW_ERR_CORRUPT,
                            "the tree has %llu bytes, the table says %llu",
                            (unsigned long long)tree.bytes, (unsigned long long)size);
    }
    return err;
}

static enum fgw_err stage(struct object *object, const struct fgw_id *owner_id,
                          struct fgw_blob_staged *out_staged)
{
    struct fgw_storage_owner owner = {.key = object->row->key};
    memcpy(owner.bucket_id, object->bucket->id.bytes, sizeof owner.bucket_id);
    memcpy(owner.owner_id, owner_id->bytes, sizeof owner.owner_id);
    struct fgw_blob_stage_options options = {.arena = &object->arena,
                                             .owner = &owner,
                                             .size_hint = (uint64_t)object->row->size,
                                             .replicas = object->bucket->replicas};
    enum fgw_err err = fgw_blob_stage_begin(object->import->options->blobs, &options,
                                            &object->stage, &object->error);
    if (err != FGW_OK) {
        return err;
    }
    err = read_tree(object);
    if (err != FGW_OK) {
        fgw_blob_stage_abort(object->stage);
        return err;
    }
    return fgw_blob_stage_finish(object->stage, out_staged);
}

static void describe(struct object *object, const struct fgw_blob_staged *staged,
                     struct fgw_object *out)
{
    uint8_t md5[FGW_MD5_SIZE];
    char *etag = fgw_arena_alloc(&object->arena, 2 * sizeof md5);
    fgw_digest_end(&object->md5, md5);
    fgw_hex_encode(fgw_bytes(md5, sizeof md5), etag);
    out->size = (uint64_t)object->row->size;
    out->etag = fgw_bytes(etag, 2 * sizeof md5);
    out->creator_id = object->import->options->owner_id;
    out->creator_name = FGW_LIT("root");
    out->extents = &staged->extent;
    out->extent_count = 1;
    out->cid = staged->extent.root;
    out->has_cid = true;
    out->canonical_cid = true; /* one blob is laid out as unixfs-v1-2025 says */
    if (!same_root(object, &out->cid)) {
        struct fgw_meta_pair *pair = fgw_arena_alloc(&object->arena, sizeof *pair);
        *pair = (struct fgw_meta_pair){FGW_LIT(FGW_IMPORT_CID_HEADER), object->row->cid};
        out->headers = pair;
        out->header_count = 1;
    }
}

static enum fgw_err write_object(struct object *object, enum outcome *out_outcome)
{
    struct fgw_meta *meta = object->import->options->meta;
    struct fgw_put put = {.bucket = object->bucket, .conditions.if_none_match_any = true};
    struct fgw_blob_staged staged;
    struct fgw_written written;
    put.object.key = object->row->key;
    fgw_id_random(&put.object.owner_id);
    enum fgw_err err = stage(object, &put.object.owner_id, &staged);
    if (err != FGW_OK) {
        return err;
    }
    describe(object, &staged, &put.object);
    put.staged = &staged;
    put.staged_count = 1;
    err = meta->ops->object_put(meta, &object->arena, &put, &written, &object->error);
    *out_outcome = IMPORTED;
    if (err == FGW_ERR_PRECONDITION_FAILED || err == FGW_ERR_UNKNOWN_OUTCOME) {
        fgw_error_init(&object->error);
        err = look(object, out_outcome); /* somebody wrote it meanwhile, or we did */
        *out_outcome = *out_outcome == PRESENT ? IMPORTED : *out_outcome;
    }
    return err;
}

/* -- one row ------------------------------------------------------------------------------------- */

static enum fgw_err check_row(struct object *object)
{
    const struct fgw_legacy_row *row = object->row;
    if (row->bucket.len < BUCKET_NAME_MIN || row->bucket.len > BUCKET_NAME_MAX) {
        return fgw_error_set(&object->error, FGW_ERR_INVALID_ARGUMENT,
                             "a bucket name has 3 to 63 characters");
    }
    if (row->key.len == 0 || row->key.len > FGW_META_KEY_MAX) {
        return fgw_error_set(&object->error, FGW_ERR_INVALID_ARGUMENT, "a key has 1 to 1024 bytes");
    }
    if (row->size < 0) {
        return fgw_error_set(&object->error, FGW_ERR_CORRUPT, "the table has no size for it");
    }
    if (fgw_cid_decode_text(row->cid, object->cid_bytes, &object->cid) != FGW_OK) {
        return fgw_error_set(&object->error, FGW_ERR_CORRUPT,
                             "the table has no CID that can be "
                             "read");
    }
    return FGW_OK;
}

static enum fgw_err take_row(struct object *object, enum outcome *out_outcome)
{
    const struct fgw_import_options *options = object->import->options;
    enum fgw_err err = check_row(object);
    if (err != FGW_OK) {
        return err;
    }
    if (object->row->expires_ms > 0 && object->row->expires_ms <= fgw_clock_wall_ms()) {
        *out_outcome = EXPIRED;
        return FGW_OK;
    }
    if (options->dry_run) {
        *out_outcome = IMPORTED;
        return read_tree(object);
    }
    err = find_bucket(object);
    err = err == FGW_OK ? look(object, out_outcome) : err;
    if (err == FGW_ERR_NO_SUCH_KEY) {
        fgw_error_init(&object->error);
        err = write_object(object, out_outcome);
    }
    return err;
}

static void count(struct import *import, const struct fgw_legacy_row *row, enum outcome outcome)
{
    struct fgw_import_counts *counts = import->counts;
    counts->imported += outcome == IMPORTED;
    counts->bytes += outcome == IMPORTED ? (uint64_t)row->size : 0;
    counts->present += outcome == PRESENT;
    counts->kept += outcome == KEPT;
    counts->expired += outcome == EXPIRED;
    counts->failed += outcome == FAILED;
}

/* The destination cannot take more, or the fault is ours: going on would fail for every row. */
static bool ends_all(enum fgw_err err)
{
    return err == FGW_ERR_NOSPACE || err == FGW_ERR_UNAVAILABLE || err == FGW_ERR_CANCELLED ||
           err == FGW_ERR_CONFIG || err == FGW_ERR_ACCESS_DENIED;
}

static void work(void *arg)
{
    struct import *import = arg;
    struct object *object = fgw_xcalloc(1, sizeof *object);
    object->import = import;
    while (import->stop == FGW_OK && import->next_row < import->row_count) {
        const struct fgw_legacy_row *row = &import->rows[import->next_row++];
        enum outcome outcome = PASSED_OVER;
        if (import->options->only_bucket != NULL &&
            !fgw_bytes_eq_str(row->bucket, import->options->only_bucket)) {
            continue;
        }
        import->counts->rows++;
        object->row = row;
        object->stage = NULL;
        fgw_error_init(&object->error);
        fgw_arena_init(&object->arena, 0);
        enum fgw_err err = take_row(object, &outcome);
        if (err != FGW_OK) {
            outcome = FAILED;
            const char *message =
                object->error.message[0] != '\0' ? object->error.message : fgw_err_text(err);
            report(import, row, message);
            if (ends_all(err)) {
                import->stop = err;
                (void)fgw_error_set(&import->stop_error, err, "%s", message);
            }
        } else if (outcome == KEPT) {
            report(import, row, "the name has another content here, which stays");
        }
        count(import, row, outcome);
        fgw_arena_deinit(&object->arena);
    }
    fgw_digest_deinit(&object->md5);
    fgw_xfree(object);
    fgw_wait_signal(&import->workers);
}

/* -- all of it ----------------------------------------------------------------------------------- */

static void note_car(void *context, const char *file, uint64_t offset, const char *what)
{
    struct import *import = context;
    char message[600];
    import->counts->cars_damaged++;
    (void)snprintf(message, sizeof message, "%s offset %llu: %s; what follows there is not used",
                   file, (unsigned long long)offset, what);
    report(import, NULL, message);
}

struct opening {
    struct import *import;
    struct fgw_error *error;
    enum fgw_err err;
};

static void open_cars(void *arg)
{
    struct opening *opening = arg;
    struct import *import = opening->import;
    opening->err =
        fgw_car_set_open(import->options->folder, note_car, import, &import->cars, opening->error);
}

static enum fgw_err work_page(struct import *import)
{
    import->next_row = 0;
    fgw_wait_init(&import->workers, FIBERS);
    for (unsigned i = 0; i < FIBERS; i++) {
        fgw_fiber_spawn(fgw_loop_current(), work, import);
    }
    fgw_wait_for(&import->workers);
    return import->stop;
}

/* A long import says how far it is. */
static void say_progress(const struct import *import, uint64_t *next_ms)
{
    const struct fgw_import_counts *counts = import->counts;
    if (fgw_clock_boot_ms() < *next_ms) {
        return;
    }
    *next_ms = fgw_clock_boot_ms() + PROGRESS_MS;
    fgw_log_info("import", "%llu objects looked at, %llu taken over (%llu MiB), %llu failed",
                 (unsigned long long)counts->rows, (unsigned long long)counts->imported,
                 (unsigned long long)(counts->bytes >> 20), (unsigned long long)counts->failed);
}

static enum fgw_err work_table(struct import *import, struct fgw_error *error)
{
    uint64_t next_ms = fgw_clock_boot_ms() + PROGRESS_MS;
    struct fgw_legacy *legacy = NULL;
    enum fgw_err err =
        fgw_legacy_open(import->options->client, import->options->keyspace, &legacy, error);
    while (err == FGW_OK) {
        err = fgw_legacy_next(legacy, &import->rows, &import->row_count, error);
        if (err == FGW_OK) {
            err = work_page(import);
            if (err != FGW_OK) {
                *error = import->stop_error;
            }
            say_progress(import, &next_ms);
        }
    }
    fgw_legacy_free(legacy);
    return err == FGW_ERR_END ? FGW_OK : err;
}

enum fgw_err fgw_import_run(const struct fgw_import_options *options,
                            struct fgw_import_counts *counts, struct fgw_error *error)
{
    struct import *import = fgw_xcalloc(1, sizeof *import);
    struct opening opening = {import, error, FGW_OK};
    import->options = options;
    import->counts = counts;
    *counts = (struct fgw_import_counts){0};
    fgw_error_init(&import->stop_error);
    fgw_arena_init(&import->arena, 0);
    import->pool = fgw_pool_new("import", POOL_THREADS);
    fgw_pool_run(import->pool, open_cars, &opening);
    enum fgw_err err = opening.err;
    if (err == FGW_OK) {
        counts->cars = fgw_car_set_file_count(import->cars);
        counts->car_blocks = fgw_car_set_block_count(import->cars);
        err = work_table(import, error);
    }
    fgw_pool_free(import->pool);
    fgw_car_set_free(import->cars);
    fgw_arena_deinit(&import->arena);
    fgw_xfree(import);
    return err;
}
