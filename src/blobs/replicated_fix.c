/* replicated_fix.c: a block that a member of a set has damaged gets its bytes back: the store is told to
 * look at it (it then marks it bad), the leaf is read from the other members, proven by the blob's root,
 * and written to the store under a hold that is given up at once: new bytes for a bad block replace it
 * for all who hold it. In the background; the reader went on elsewhere long ago. */
#include "base/crc.h"
#include "base/log.h"
#include "base/rng.h"
#include "blobs/replicated_internal.h"

enum { LEAF = FGW_STORAGE_BLOCK_MAX, FIXES_MAX = 4 };

struct fix {
    struct fgw_replicated *replicated;
    struct fgw_replicated_worker *worker;
    struct fgw_extent extent;
    struct fgw_placement_set set;    /* of the store with the bad block alone */
    struct fgw_placement_set others; /* the other members */
    uint64_t leaf;
    uint8_t *bytes;
    size_t len;
    struct fgw_error error;
};

static enum fgw_err read_good(struct fix *fix)
{
    uint64_t at = fix->leaf * LEAF;
    uint64_t left = fix->extent.size - at;
    fix->len = left < LEAF ? (size_t)left : LEAF;
    fix->bytes = fgw_xmalloc(fix->len + 1);
    struct fgw_blob_reader *reader =
        fgw_replicated_read_over(fix->replicated, &fix->extent, &fix->others);
    enum fgw_err err = FGW_OK;
    for (size_t got = 0; got < fix->len && err == FGW_OK;) {
        struct fgw_storage_run run;
        err = fgw_replicated_read_next(reader, at + got, fix->len - got, true, &run);
        if (err == FGW_OK) {
            memcpy(fix->bytes + got, run.bytes.ptr, run.bytes.len);
            got += run.bytes.len;
        }
    }
    uint8_t wanted[FGW_SHA256_SIZE];
    uint8_t digest[FGW_SHA256_SIZE];
    err = err == FGW_OK ? fgw_replicated_read_leaf(reader, fix->leaf, wanted) : err;
    fgw_replicated_read_close(reader);
    if (err == FGW_OK) {
        fgw_sha256(fgw_bytes(fix->bytes, fix->len), digest);
        err = memcmp(digest, wanted, sizeof digest) == 0 ? FGW_OK : FGW_ERR_CORRUPT;
    }
    return err;
}

static enum fgw_err write_large(struct fix *fix, const struct fgw_member *member,
                                const struct fgw_member_hold *hold,
                                const struct fgw_storage_block *block)
{
    struct fgw_member_writer writer = {NULL, NULL};
    enum fgw_err err =
        fgw_member_writer_open(member, hold->owner, hold->extent, &writer, &fix->error);
    if (err == FGW_OK) {
        err = fgw_member_writer_add(&writer, block, true, &fix->error);
    }
    if (err == FGW_OK) {
        err = fgw_member_writer_finish(member, &writer, hold, &fix->error);
    }
    fgw_member_writer_close(&writer);
    return err;
}

static enum fgw_err write_good(struct fix *fix)
{
    struct fgw_member member = {fix->replicated, &fix->set, 0};
    struct fgw_bytes bytes = fgw_bytes(fix->bytes, fix->len);
    struct fgw_storage_owner nobody = {.key = {NULL, 0}};
    struct fgw_storage_block block = {.crc32c = fgw_crc32c(0, bytes), .bytes = bytes};
    uint8_t digest[FGW_SHA256_SIZE];
    fgw_sha256(bytes, digest);
    block.cid = fgw_cid_make(FGW_CODEC_RAW, digest);
    fgw_rng_fill(nobody.owner_id, sizeof nobody.owner_id);
    struct fgw_member_hold hold = {&nobody, FGW_EXTENT_TEMPORARY, &block.cid, fix->len};
    enum fgw_err err = fgw_member_damaged(&member, &block.cid, &fix->error);
    if (err != FGW_OK) {
        return err;
    }
    err = fix->len <= FGW_STORAGE_INLINE_MAX ? fgw_member_hold(&member, &hold, &block, &fix->error)
                                             : write_large(fix, &member, &hold, &block);
    if (err == FGW_OK) {
        struct fgw_storage_hold_seen given_up = {nobody, hold.extent, block.cid, fix->len};
        fgw_member_release(&member, &given_up, 1);
    }
    return err;
}

static void run(void *arg)
{
    struct fix *fix = arg;
    struct fgw_replicated_worker *worker = fix->worker;
    char text[FGW_CID_TEXT_SIZE];
    fgw_cid_text(&fix->extent.root, text);
    enum fgw_err err = read_good(fix);
    err = err == FGW_OK ? write_good(fix) : err;
    if (err == FGW_OK) {
        FGW_REPLICATED_COUNT(fix->replicated, blocks_mended);
        fgw_log_info("blobs", "leaf %llu of %s was damaged at %s and is whole again",
                     (unsigned long long)fix->leaf, text, fix->set.members[0].address);
    } else {
        fgw_log_warn("blobs", "leaf %llu of %s is damaged at %s and could not be mended: %s",
                     (unsigned long long)fix->leaf, text, fix->set.members[0].address,
                     fix->error.message[0] != '\0' ? fix->error.message : fgw_err_text(err));
    }
    fgw_xfree(fix->bytes);
    fgw_xfree(fix);
    worker->fixes--;
    fgw_replicated_hint_done(worker);
}

void fgw_replicated_fix_later(struct fgw_replicated *replicated, const struct fgw_extent *extent,
                              const struct fgw_placement_set *set, unsigned bad, uint64_t leaf)
{
    struct fgw_replicated_worker *worker = &replicated->per_worker[fgw_worker_index()];
    if (worker->closing || worker->fixes >= FIXES_MAX || set->count < 2) {
        return; /* whoever reads it next meets it again */
    }
    struct fix *fix = fgw_xcalloc(1, sizeof *fix);
    fix->replicated = replicated;
    fix->worker = worker;
    fix->extent = *extent;
    fix->leaf = leaf;
    fix->set.id = fix->others.id = set->id;
    fix->set.epoch = fix->others.epoch = set->epoch;
    for (unsigned i = 0; i < set->count; i++) {
        struct fgw_placement_set *to = i == bad ? &fix->set : &fix->others;
        to->members[to->count++] = set->members[i];
    }
    worker->fixes++;
    worker->hints++;
    fgw_fiber_spawn(fgw_loop_current(), run, fix);
}
