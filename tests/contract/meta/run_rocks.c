/* run_rocks.c: the metadata contract on the embedded backend, on a directory of its own; then once
 * more after a restart on the same directory. */
#include "contract/meta/meta_contract.h"

#include <ftw.h>
#include <unistd.h>

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

static void run(void *path)
{
    struct fgw_storage_options options = {.path = path, .memory_bytes = 64 << 20,
                                          .group_size_bytes = 64 << 20, .min_free_bytes = 1,
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
    (void)fprintf(stderr, "[==========] %u test(s) run.\n[  PASSED  ] %u test(s).\n", passed, passed);
    return 0;
}
