/* groups.c: the groups of an open storage for people who look at them: list, seal, check of a whole
 * file. In fibers; files are read on the pool. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "storage/compact.h"
#include "storage/index_page.h"
#include "storage/storage_internal.h"

enum { PAGE = 1000 };

/* -- list ---------------------------------------------------------------------------------------- */

uint64_t fgw_storage_group_bytes(const struct fgw_storage *storage, uint64_t group)
{
    char name[FGW_GROUP_NAME_SIZE];
    struct stat status;
    fgw_group_name(group, name);
    return fstatat(storage->dir.groups, name, &status, 0) == 0 ? (uint64_t)status.st_size : 0;
}

static void fill_group(struct fgw_storage *storage, uint64_t id, const struct fgw_group_row *row,
                       struct fgw_storage_group *out)
{
    struct fgw_committer_stats committer;
    fgw_committer_stats(storage->committer, &committer);
    *out = (struct fgw_storage_group){.id = id,
                                      .bulk = row->kind == FGW_GROUP_BULK,
                                      .end = row->end,
                                      .live_blocks = row->live_blocks,
                                      .live_bytes = row->live_bytes,
                                      .dead_bytes = row->written_bytes - row->live_bytes,
                                      .file_bytes = fgw_storage_group_bytes(storage, id)};
    if (out->bulk) {
        out->writing = fgw_bulk_busy(storage->bulk, id);
    } else if (id == committer.log_group) {
        out->writing = true;
        out->end = committer.log_end;
    }
    out->missing = out->file_bytes < out->end || out->file_bytes == 0;
}

struct list_job {
    struct fgw_storage *storage;
    struct fgw_index_page page;
    struct fgw_storage_group *groups;
    size_t count;
    bool more;
    uint64_t next;
    enum fgw_err result;
};

static void run_list(void *arg)
{
    struct list_job *job = arg;
    struct fgw_row_key lower = fgw_row_key_group(job->next);
    struct fgw_row_key upper = {.bytes = {'g' + 1}, .len = 1};
    struct fgw_index_range range = {fgw_row_key_bytes(&lower), fgw_row_key_bytes(&upper), PAGE};
    job->result = fgw_index_page_load(&job->page, job->storage->kv, &range);
    for (size_t i = 0; i < job->page.count && job->result == FGW_OK; i++) {
        struct fgw_group_row row;
        job->next = fgw_get_u64be(job->page.rows[i].key.ptr + 1) + 1;
        job->result = fgw_group_row_decode(job->page.rows[i].value, &row);
        if (job->result == FGW_OK) {
            fill_group(job->storage, job->next - 1, &row, &job->groups[job->count++]);
        }
    }
    job->more = job->page.more;
}

enum fgw_err fgw_storage_groups(struct fgw_storage *storage, struct fgw_storage_group **out_groups,
                                size_t *out_count)
{
    struct list_job job = {.storage = storage, .more = true};
    fgw_index_page_init(&job.page);
    while (job.more && job.result == FGW_OK) {
        job.groups = fgw_xrealloc(job.groups, (job.count + PAGE) * sizeof *job.groups);
        fgw_pool_run(storage->pool, run_list, &job);
    }
    fgw_index_page_deinit(&job.page);
    if (job.result != FGW_OK) {
        fgw_xfree(job.groups);
        return job.result;
    }
    *out_groups = job.groups;
    *out_count = job.count;
    return FGW_OK;
}

struct get_job {
    struct fgw_storage *storage;
    uint64_t id;
    struct fgw_storage_group group;
    enum fgw_err result;
};

static void run_get(void *arg)
{
    struct get_job *job = arg;
    struct fgw_group_row row;
    struct fgw_committer_stats committer;
    job->result = fgw_storage_group_row(job->storage, job->id, &row);
    fgw_committer_stats(job->storage->committer, &committer);
    if (job->result == FGW_ERR_NOT_FOUND && job->id == committer.log_group) {
        row = (struct fgw_group_row){.kind = FGW_GROUP_LOG}; /* no batch in it yet */
        job->result = FGW_OK;
    }
    if (job->result == FGW_OK) {
        fill_group(job->storage, job->id, &row, &job->group);
    }
}

enum fgw_err fgw_storage_group_get(struct fgw_storage *storage, uint64_t id,
                                   struct fgw_storage_group *out_group)
{
    struct get_job job = {.storage = storage, .id = id};
    fgw_pool_run(storage->pool, run_get, &job);
    if (job.result == FGW_OK) {
        *out_group = job.group;
    }
    return job.result;
}

/* -- seal ---------------------------------------------------------------------------------------- */

enum fgw_err fgw_storage_group_seal(struct fgw_storage *storage, uint64_t id)
{
    struct fgw_storage_group group;
    enum fgw_err err = fgw_storage_group_get(storage, id, &group);
    if (err != FGW_OK || !group.writing) {
        return err;
    }
    if (!group.bulk) {
        return fgw_compact_leave_log_group(storage, id);
    }
    fgw_bulk_seal(storage->bulk, id);
    return FGW_OK;
}

/* -- check --------------------------------------------------------------------------------------- */

struct verify_job {
    struct fgw_storage *storage;
    struct fgw_storage_group_check *check;
    uint64_t end;   /* of what is known to be there */
    uint64_t until; /* of this call */
    enum fgw_err result;
};

static enum fgw_err check_header(int fd)
{
    uint8_t found[FGW_CAR_HEADER_SIZE];
    uint8_t want[FGW_CAR_HEADER_SIZE];
    struct fgw_cid root = fgw_car_placeholder_root();
    fgw_car_header_encode(&root, want);
    enum fgw_err err = fgw_fs_pread(fd, found, sizeof found, 0);
    return err == FGW_OK && memcmp(found, want, sizeof want) != 0 ? FGW_ERR_CORRUPT : err;
}

/* The section at check->offset: its block's bytes have the CID that stands before them. */
static enum fgw_err check_section(struct verify_job *job, int fd, uint8_t *bytes)
{
    struct fgw_storage_group_check *check = job->check;
    struct fgw_car_section section;
    uint64_t left = job->end - check->offset;
    size_t head_len = left < FGW_CAR_SECTION_HEAD_MAX ? (size_t)left : FGW_CAR_SECTION_HEAD_MAX;
    enum fgw_err err = fgw_fs_pread(fd, bytes, head_len, check->offset);
    if (err != FGW_OK) {
        return err;
    }
    if (fgw_car_section_decode(fgw_bytes(bytes, head_len), &section) != FGW_OK ||
        section.head_size + section.block_size > left) {
        return FGW_ERR_CORRUPT;
    }
    uint8_t *block = bytes + FGW_CAR_SECTION_HEAD_MAX; /* the CID's view stays */
    err = fgw_fs_pread(fd, block, section.block_size, check->offset + section.head_size);
    if (err == FGW_OK) {
        err = fgw_cid_verify(&section.cid, fgw_bytes(block, section.block_size));
    }
    if (err == FGW_OK) {
        check->offset += section.head_size + section.block_size;
        check->sections++;
    }
    return err;
}

static void run_verify(void *arg)
{
    struct verify_job *job = arg;
    struct fgw_storage_group_check *check = job->check;
    struct fgw_group_file *file;
    job->result = fgw_group_files_acquire(&job->storage->files, check->group, &file);
    if (job->result != FGW_OK) {
        return;
    }
    uint8_t *bytes = fgw_xmalloc(FGW_CAR_SECTION_HEAD_MAX + FGW_CAR_BLOCK_MAX);
    if (check->offset == 0) {
        job->result = check_header(file->fd);
        check->offset = job->result == FGW_OK ? FGW_CAR_HEADER_SIZE : 0;
    }
    while (job->result == FGW_OK && check->offset < job->end && check->offset < job->until) {
        job->result = check_section(job, file->fd, bytes);
    }
    fgw_xfree(bytes);
    fgw_group_files_release(&job->storage->files, file);
}

enum fgw_err fgw_storage_group_verify(struct fgw_storage *storage,
                                      struct fgw_storage_group_check *check, uint64_t bytes)
{
    struct fgw_storage_group group;
    enum fgw_err err = fgw_storage_group_get(storage, check->group, &group);
    if (err != FGW_OK) {
        return err;
    }
    struct verify_job job = {
        .storage = storage, .check = check, .end = group.end, .until = check->offset + bytes};
    if (check->offset > 0 && (check->offset < FGW_CAR_HEADER_SIZE || check->offset > group.end)) {
        return FGW_ERR_INVALID_ARGUMENT;
    }
    fgw_pool_run(storage->pool, run_verify, &job);
    check->done = job.result == FGW_OK && check->offset >= job.end;
    check->damaged = job.result == FGW_ERR_CORRUPT || job.result == FGW_ERR_END ||
                     (job.result == FGW_ERR_NOT_FOUND && group.end > 0);
    return check->damaged ? FGW_OK : job.result;
}
