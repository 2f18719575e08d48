/* recover.c: replay of the log; see recover.h.
 *
 * Crash argument: replay changes the log only by cutting a tail that nobody was told of; it applies
 * batches one by one, each atomically with how far the index is, so it may be interrupted anywhere
 * and starts again behind the last one applied.
 */
#include "storage/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/tlv.h"
#include "storage/log_scan.h"

static enum fgw_err damaged(const struct fgw_replay *replay, uint64_t group, uint64_t offset,
                            const char *what, struct fgw_error *error)
{
    char name[FGW_GROUP_NAME_SIZE];
    fgw_group_name(group, name);
    return fgw_error_set(error, FGW_ERR_CORRUPT,
                         "%s/groups/%s is damaged at offset %llu: %s; `fgw recover --skip-damaged` "
                         "goes on without it and tells what is lost",
                         replay->dir->path, name, (unsigned long long)offset, what);
}

/* Goes on behind damage when that is wanted: says what is lost. */
static bool skip(struct fgw_replay *replay, uint64_t group, uint64_t offset, const char *what)
{
    if (!replay->skip_damaged) {
        return false;
    }
    replay->damages++;
    fgw_log_error("storage", "log group %llu is damaged at offset %llu: %s: passed over",
                  (unsigned long long)group, (unsigned long long)offset, what);
    return true;
}

static void note_lost(struct fgw_replay *replay, uint64_t first, uint64_t behind)
{
    replay->lost += behind - first;
    fgw_log_error("storage", "lost batches=%llu..%llu", (unsigned long long)first,
                  (unsigned long long)behind - 1);
}

/* -- the chain of log groups --------------------------------------------------------------------- */

static struct fgw_found_group *newest_log(const struct fgw_found_groups *found)
{
    for (size_t i = found->count; i > 0; i--) {
        if (found->groups[i - 1].is_log && found->groups[i - 1].readable) {
            return &found->groups[i - 1];
        }
    }
    return NULL;
}

/* All of the log up to where the index stands may have been removed: then the next group begins
 * exactly there. */
static bool index_stands_before(const struct fgw_replay *replay,
                                const struct fgw_found_group *group)
{
    const struct fgw_applied *applied = &replay->apply->applied;
    return group->predecessor.group == applied->group && group->predecessor.end == applied->end &&
           group->predecessor.last_batch == applied->batch &&
           fgw_found_group(replay->found, applied->group) == NULL;
}

/* Marks the groups from the one the index stands in to the newest. */
static enum fgw_err mark_chain(struct fgw_replay *replay, struct fgw_error *error)
{
    const struct fgw_applied *applied = &replay->apply->applied;
    struct fgw_found_group *group = newest_log(replay->found);
    if (group == NULL) {
        return fgw_error_set(error, FGW_ERR_CORRUPT,
                             "%s/groups holds no log group: restore it from a backup",
                             replay->dir->path);
    }
    for (;;) {
        group->in_chain = true;
        uint64_t before = group->predecessor.group;
        if (group->id == applied->group || (applied->batch == 0 && before == 0) ||
            index_stands_before(replay, group)) {
            return FGW_OK;
        }
        if (before == 0) {
            if (replay->skip_damaged && applied->batch == 0) {
                return FGW_OK;
            }
            replay->index_ahead = true;
            return damaged(replay, group->id, 0, "the log begins behind the index", error);
        }
        uint64_t successor = group->id;
        group = fgw_found_group(replay->found, before);
        if (group == NULL || !group->readable || !group->is_log) {
            if (skip(replay, before, 0, "missing, or its beginning is damaged")) {
                return FGW_OK;
            }
            char name[FGW_GROUP_NAME_SIZE];
            fgw_group_name(before, name);
            return fgw_error_set(error, FGW_ERR_CORRUPT,
                                 "%s/groups/%s is missing or damaged at offset 0: log group %llu "
                                 "goes on from it; `fgw recover --skip-damaged` goes on without it "
                                 "and tells what is lost",
                                 replay->dir->path, name, (unsigned long long)successor);
        }
    }
}

static struct fgw_found_group *successor_of(const struct fgw_found_groups *found, uint64_t id)
{
    for (size_t i = 0; i < found->count; i++) {
        if (found->groups[i].in_chain && found->groups[i].predecessor.group == id) {
            return &found->groups[i];
        }
    }
    return NULL;
}

/* -- the last batch ------------------------------------------------------------------------------ */

/* Are the bytes there that the batch says it wrote into this group? */
static bool blocks_whole(int fd, uint64_t group, const struct fgw_log_batch *batch,
                         struct fgw_bytes items)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(items);
    struct fgw_tlv_item item;
    bool whole = true;
    while (whole && fgw_tlv_next(&reader, &item) == FGW_OK) {
        struct fgw_item_block block;
        struct fgw_item_owner owner;
        struct fgw_bytes bytes;
        if (item.tag != FGW_ITEM_BLOCK_HOLD ||
            fgw_item_block_hold(item.value, &block, &owner) != FGW_OK || !block.written ||
            block.group != group || block.offset < batch->start) {
            continue;
        }
        struct fgw_group_block wanted = {block.digest, block.offset, block.len, block.crc32c};
        uint8_t *section = fgw_xmalloc(fgw_group_section_size(block.len));
        whole = fgw_group_read_block(fd, &wanted, section, &bytes) == FGW_OK;
        fgw_xfree(section);
    }
    return whole;
}

static bool copy_bytes(int from, uint64_t offset, uint64_t end, int to)
{
    enum { STEP = 1 << 20 };
    uint8_t *bytes = fgw_xmalloc(STEP);
    bool ok = true;
    for (uint64_t at = offset; at < end && ok;) {
        size_t len = end - at < STEP ? (size_t)(end - at) : STEP;
        ok = fgw_fs_pread(from, bytes, len, at) == FGW_OK &&
             fgw_fs_pwrite(to, fgw_bytes(bytes, len), at - offset) == FGW_OK;
        at += len;
    }
    fgw_xfree(bytes);
    return ok;
}

/* A tail that nobody was told of: kept aside, cut, said. */
static enum fgw_err cut_tail(struct fgw_replay *replay, int fd, uint64_t group, uint64_t end,
                             uint64_t size, struct fgw_error *error)
{
    char name[64];
    (void)snprintf(name, sizeof name, "torn-%llu-%llu", (unsigned long long)group,
                   (unsigned long long)end);
    int copy = openat(replay->dir->tmp, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool kept = copy >= 0 && copy_bytes(fd, end, size, copy);
    if (copy >= 0) {
        (void)close(copy);
    }
    fgw_log_warn("storage",
                 "log group %llu: cut a torn, never acknowledged tail at offset %llu "
                 "bytes=%llu copy=%s",
                 (unsigned long long)group, (unsigned long long)end,
                 (unsigned long long)(size - end), kept ? name : "(none)");
    enum fgw_err err = fgw_fs_ftruncate(fd, end);
    if (err == FGW_OK) {
        err = fgw_fs_fsync(fd);
    }
    return err == FGW_OK ? err
                         : fgw_error_set(error, FGW_ERR_IO, "cannot cut log group %llu: %s",
                                         (unsigned long long)group, strerror(errno));
}

/* After a failed sync and a restart the kernel may show bytes that never reached the disk: the same
 * bytes, written again, are dirty again and will. */
static enum fgw_err rewrite(int fd, uint64_t start, uint64_t end)
{
    enum { STEP = 1 << 20 };
    uint8_t *bytes = fgw_xmalloc(STEP);
    enum fgw_err err = FGW_OK;
    for (uint64_t at = start; at < end && err == FGW_OK;) {
        size_t len = end - at < STEP ? (size_t)(end - at) : STEP;
        err = fgw_fs_pread(fd, bytes, len, at);
        if (err == FGW_OK) {
            err = fgw_fs_pwrite(fd, fgw_bytes(bytes, len), at);
        }
        at += len;
    }
    fgw_xfree(bytes);
    return err == FGW_OK ? fgw_fs_fdatasync(fd) : err;
}

/* -- one group ----------------------------------------------------------------------------------- */

struct walk {
    struct fgw_replay *replay;
    struct fgw_found_group *group;
    struct fgw_found_group *successor; /* NULL: the last group */
    struct fgw_log_scan scan;
    struct fgw_log_batch held; /* read, not yet applied: it may be the last */
    struct fgw_buf held_items;
    bool holds;
    uint64_t last_number; /* of the last batch accepted */
    uint64_t end;         /* behind it */
    uint64_t last_record;
};

static enum fgw_err apply_held(struct walk *walk, struct fgw_error *error)
{
    struct fgw_replay *replay = walk->replay;
    if (!walk->holds) {
        return FGW_OK;
    }
    struct fgw_apply_input input = {.items = fgw_buf_bytes(&walk->held_items),
                                    .batch = walk->held.number,
                                    .group = walk->group->id,
                                    .end = walk->held.end,
                                    .last_record = walk->held.last_record};
    walk->holds = false;
    enum fgw_err err = fgw_apply_batch(replay->apply, &input, error);
    if (err == FGW_OK) {
        replay->replayed++;
        fgw_open_progress(replay->progress, "replaying the log: %llu batches so far, in group %llu",
                          (unsigned long long)replay->replayed,
                          (unsigned long long)walk->group->id);
        walk->last_number = input.batch;
        walk->end = input.end;
        walk->last_record = input.last_record;
    } else if (err == FGW_ERR_NEWER_VERSION) {
        err =
            fgw_error_set(error, err, "batch %llu in log group %llu was written by a newer version",
                          (unsigned long long)input.batch, (unsigned long long)walk->group->id);
    } else if (err == FGW_ERR_CORRUPT) {
        err =
            damaged(replay, walk->group->id, walk->held.start, "it does not fit the index", error);
    }
    return err;
}

static enum fgw_err hold(struct walk *walk, const struct fgw_log_batch *batch,
                         struct fgw_error *error)
{
    uint64_t expected = (walk->holds ? walk->held.number : walk->last_number) + 1;
    if (batch->number > expected && walk->replay->skip_damaged) {
        note_lost(walk->replay, expected, batch->number);
    } else if (batch->number != expected) {
        return damaged(walk->replay, walk->group->id, batch->start, "batch numbers have a gap",
                       error);
    }
    enum fgw_err err = apply_held(walk, error);
    if (err == FGW_OK) {
        fgw_buf_clear(&walk->held_items);
        (void)fgw_buf_append(&walk->held_items, batch->items);
        walk->held = *batch;
        walk->holds = true;
    }
    return err;
}

/* The walk met something that is no whole batch, at scan.offset. */
static enum fgw_err judge_tail(struct walk *walk, uint64_t last, struct fgw_error *error)
{
    struct fgw_log_tail tail;
    enum fgw_err err = fgw_log_scan_tail(&walk->scan, last, &tail);
    if (err != FGW_OK) {
        return fgw_error_set(error, err, "cannot read log group %llu",
                             (unsigned long long)walk->group->id);
    }
    if (tail.later_batch && !tail.all_unsynced) {
        return damaged(walk->replay, walk->group->id, walk->scan.offset,
                       "whole batches lie behind it", error);
    }
    return FGW_OK;
}

static enum fgw_err finish_last_group(struct walk *walk, enum fgw_err scanned,
                                      struct fgw_error *error)
{
    struct fgw_replay *replay = walk->replay;
    uint64_t size = walk->scan.size;
    if (walk->holds && !blocks_whole(walk->scan.fd, walk->group->id, &walk->held,
                                     fgw_buf_bytes(&walk->held_items))) {
        walk->scan.offset = walk->held.start;
        walk->holds = false;
        scanned = FGW_ERR_CORRUPT;
    }
    uint64_t last = walk->holds ? walk->held.number : walk->last_number;
    enum fgw_err err = scanned == FGW_ERR_END ? FGW_OK : judge_tail(walk, last, error);
    if (err == FGW_OK && walk->holds) {
        err = rewrite(walk->scan.fd, walk->held.start, walk->held.end);
        if (err == FGW_OK) {
            err = apply_held(walk, error);
        }
    }
    if (err == FGW_OK && scanned != FGW_ERR_END) {
        err = cut_tail(replay, walk->scan.fd, walk->group->id, walk->end, size, error);
    }
    return err;
}

static enum fgw_err finish_sealed_group(struct walk *walk, enum fgw_err scanned,
                                        struct fgw_error *error)
{
    uint64_t last = walk->holds ? walk->held.number : walk->last_number;
    bool whole = scanned == FGW_ERR_END && last == walk->successor->predecessor.last_batch;
    if (!whole && !skip(walk->replay, walk->group->id, walk->scan.offset,
                        "its successor names a later end")) {
        return damaged(walk->replay, walk->group->id, walk->scan.offset,
                       "its successor names a later end", error);
    }
    return apply_held(walk, error);
}

/* Behind damage, at the next batch; false: none follows, or it is not wanted. */
static bool pass_damage(struct walk *walk)
{
    uint64_t last = walk->holds ? walk->held.number : walk->last_number;
    uint64_t offset = walk->scan.offset;
    return walk->replay->skip_damaged && fgw_log_scan_resync(&walk->scan, last) == FGW_OK &&
           skip(walk->replay, walk->group->id, offset, "no whole batch there");
}

static enum fgw_err walk_group(struct walk *walk, struct fgw_error *error)
{
    struct fgw_log_batch batch;
    enum fgw_err err;
    while ((err = fgw_log_scan_next(&walk->scan, &batch)) == FGW_OK ||
           (err == FGW_ERR_CORRUPT && pass_damage(walk))) {
        err = err == FGW_OK ? hold(walk, &batch, error) : FGW_OK;
        if (err != FGW_OK) {
            return err;
        }
    }
    if (err != FGW_ERR_END && err != FGW_ERR_CORRUPT) {
        return fgw_error_set(error, err, "cannot read log group %llu",
                             (unsigned long long)walk->group->id);
    }
    return walk->successor != NULL ? finish_sealed_group(walk, err, error)
                                   : finish_last_group(walk, err, error);
}

/* The batch the index stands at must be in the log. */
static bool applied_is_there(struct walk *walk)
{
    const struct fgw_applied *applied = &walk->replay->apply->applied;
    struct fgw_log_batch batch;
    struct fgw_log_scan scan;
    uint64_t limit = walk->successor != NULL ? walk->successor->predecessor.end : walk->group->size;
    if (applied->end > limit || applied->end > walk->group->size) {
        return false;
    }
    if (applied->last_record == 0) {
        return applied->end == walk->group->first_end;
    }
    /* the last record alone is enough: it is part m of m */
    fgw_log_scan_init(&scan, walk->scan.fd, walk->group->id, applied->end, applied->last_record,
                      walk->replay->opener);
    enum fgw_err err = fgw_log_scan_record(&scan, &batch);
    fgw_log_scan_deinit(&scan);
    return err == FGW_OK && batch.number == applied->batch && batch.end == applied->end;
}

static enum fgw_err replay_group(struct fgw_replay *replay, struct fgw_found_group *group,
                                 struct fgw_error *error)
{
    char name[FGW_GROUP_NAME_SIZE];
    const struct fgw_applied *applied = &replay->apply->applied;
    bool stands_here = applied->group == group->id;
    struct walk walk = {.replay = replay,
                        .group = group,
                        .successor = successor_of(replay->found, group->id),
                        .last_number = applied->batch,
                        .end = stands_here ? applied->end : group->first_end,
                        .last_record = stands_here ? applied->last_record : 0};
    uint64_t size = walk.successor != NULL ? walk.successor->predecessor.end : group->size;
    if (size > group->size && skip(replay, group->id, group->size, "it is too short")) {
        size = group->size;
    }
    fgw_group_name(group->id, name);
    int fd = openat(replay->dir->groups, name, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return fgw_error_set(error, FGW_ERR_IO, "cannot open %s/groups/%s: %s", replay->dir->path,
                             name, strerror(errno));
    }
    fgw_buf_init(&walk.held_items, 0);
    fgw_log_scan_init(&walk.scan, fd, group->id, size, walk.end, replay->opener);
    walk.scan.previous_record = walk.last_record;
    enum fgw_err err;
    if (stands_here && !applied_is_there(&walk)) {
        replay->index_ahead = true;
        err = damaged(replay, group->id, walk.end, "the index knows later batches than it holds",
                      error);
    } else if (size > group->size) {
        err =
            damaged(replay, group->id, group->size, "it is shorter than its successor says", error);
    } else {
        err = walk_group(&walk, error);
    }
    if (err == FGW_OK && walk.successor == NULL) {
        replay->position =
            (struct fgw_log_position){fd, group->id, walk.end, walk.last_record, walk.last_number};
    } else {
        (void)close(fd);
    }
    fgw_log_scan_deinit(&walk.scan);
    fgw_buf_deinit(&walk.held_items);
    return err;
}

enum fgw_err fgw_replay_log(struct fgw_replay *replay, struct fgw_error *error)
{
    replay->apply->lenient = replay->skip_damaged;
    enum fgw_err err = mark_chain(replay, error);
    for (size_t i = 0; i < replay->found->count && err == FGW_OK; i++) {
        if (replay->found->groups[i].in_chain) {
            err = replay_group(replay, &replay->found->groups[i], error);
        }
    }
    replay->apply->lenient = false;
    return err;
}
