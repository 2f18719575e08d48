/* run_rocks.c: the metadata contract on the embedded backend, on a directory of its own; then once
 * more after a restart on the same directory. */
#include "contract/meta/meta_contract.h"

#include <ftw.h>
#include <unistd.h>

#include "base/clock.h"
#include "blobs/local.h"
#include "event/fiber.h"
#include "meta/rocks/rocks.h"

static const char *only;
static unsigned passed;

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
    (void)status;
    (void)flag;
    (void)ftw;
    return remove(path);
}

/* Completed uploads stay for 7 days; open ones whatever their age. */
static void check_purge(struct fgw_meta *meta, struct fgw_blobs *blobs)
{
    struct contract c = {.meta = meta, .blobs = blobs};
    struct fgw_upload wanted = {.key = FGW_LIT("k")};
    struct fgw_written written;
    struct fgw_upload upload;
    struct fgw_id open;
    struct fgw_id id;
    uint64_t removed = 0;
    fgw_arena_init(&c.arena, 0);
    struct fgw_bucket bucket = contract_bucket(&c, FGW_VERSIONING_NEVER);
    MUST_ANSWER(meta->ops->upload_create(meta, &c.arena, &bucket, &wanted, &open, &c.error),
                FGW_OK);
    MUST_ANSWER(meta->ops->upload_create(meta, &c.arena, &bucket, &wanted, &id, &c.error), FGW_OK);
    struct fgw_complete complete = {
        .bucket = &bucket,
        .upload_id = id,
        .object = {.key = wanted.key, .owner_id = id, .etag = FGW_LIT("e-0")}};
    MUST_ANSWER(meta->ops->upload_complete(meta, &c.arena, &complete, &written, &c.error), FGW_OK);
    fgw_clock_set_wall_offset_ms(INT64_C(8) * 24 * 3600 * 1000);
    MUST_ANSWER(fgw_meta_rocks_purge(meta, &removed), FGW_OK); /* what the other cases left too */
    MUST(removed >= 1);
    fgw_clock_set_wall_offset_ms(0);
    MUST_ANSWER(meta->ops->upload_get(meta, &c.arena, &bucket, wanted.key, &id, &upload, &c.error),
                FGW_ERR_NO_SUCH_UPLOAD);
    MUST_ANSWER(
        meta->ops->upload_get(meta, &c.arena, &bucket, wanted.key, &open, &upload, &c.error),
        FGW_OK);
    MUST_ANSWER(meta->ops->upload_create(meta, &c.arena, &bucket, &wanted, &id, &c.error), FGW_OK);
    complete.upload_id = id;
    complete.object.owner_id = id;
    MUST_ANSWER(meta->ops->upload_complete(meta, &c.arena, &complete, &written, &c.error), FGW_OK);
    MUST_ANSWER(fgw_meta_rocks_purge(meta, &removed), FGW_OK);
    MUST(removed == 0);
    fgw_arena_deinit(&c.arena);
    passed++;
}

static void run(void *path)
{
    struct fgw_storage_options options = {.path = path,
                                          .memory_bytes = 64 << 20,
                                          .group_size_bytes = 64 << 20,
                                          .min_free_bytes = 1,
                                          .dead_percent = 50};
    struct fgw_storage *storage;
    struct fgw_error error;
    fgw_error_init(&error);
    if (fgw_storage_open(&options, &storage, &error) != FGW_OK) {
        (void)fprintf(stderr, "%s\n", fgw_error_message(&error));
        abort();
    }
    struct fgw_blobs *blobs = fgw_blobs_local_new(storage);
    struct fgw_meta *meta = fgw_meta_rocks_new(storage);
    passed += meta_contract_run(meta, blobs, only);
    check_purge(meta, blobs);
    meta->ops->free(meta);
    fgw_blobs_local_free(blobs);
    fgw_storage_close(storage);
}

int main(int argc, char **argv)
{
    char path[] = "/tmp/fgw-contract-XXXXXX";
    only = argc > 1 ? argv[1] : NULL;
    if (mkdtemp(path) == NULL) {
        return 1;
    }
    fgw_fiber_run_alone(run, path);
    fgw_fiber_run_alone(run, path);
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    (void)fprintf(stderr, "[==========] %u test(s) run.\n[  PASSED  ] %u test(s).\n", passed,
                  passed);
    return 0;
}
