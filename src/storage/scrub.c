/* scrub.c: fgw_storage_scrub: pages of the block index, each read in the order of the files. */
#include <stdlib.h>

#include "base/clock.h"
#include "storage/index_page.h"
#include "storage/log_scan.h"
#include "storage/storage_internal.h"

enum { BLOCKS_PAGE = 4096, BLOBS_PAGE = 1000, SECTION_MAX = 2 * FGW_STORAGE_BLOCK_MAX + 64 };

/* A block to be read. */
struct wanted {
    uint8_t digest[FGW_SHA256_SIZE];
    struct fgw_block_row row; /* its owner's key lies in the page */
};

static void tell(struct fgw_storage_scrub *scrub, const struct fgw_storage_damage *damage)
{
    scrub->damaged++;
    if (scrub->on_damage != NULL) {
        scrub->on_damage(scrub->context, damage);
    }
}

/* -- blocks -------------------------------------------------------------------------------------- */

struct check_job {
    struct fgw_storage *storage;
    const struct wanted *wanted;
    uint8_t *section; /* SECTION_MAX */
    enum fgw_err result;
};

static void run_check(void *arg)
{
    struct check_job *job = arg;
    const struct fgw_block_row *row = &job->wanted->row;
    struct fgw_group_block block = {job->wanted->digest, row->offset, row->len, row->crc32c};
    struct fgw_group_file *file;
    struct fgw_bytes bytes;
    uint8_t digest[FGW_SHA256_SIZE];
    job->result = fgw_group_files_acquire(&job->storage->files, row->group, &file);
    if (job->result != FGW_OK) {
        job->result = job->result == FGW_ERR_NOT_FOUND ? FGW_ERR_CORRUPT : job->result;
        return;
    }
    job->result = row->len > 2 * FGW_STORAGE_BLOCK_MAX
                      ? FGW_ERR_CORRUPT
                      : fgw_group_read_block(file->fd, &block, job->section, &bytes);
    if (job->result == FGW_OK) {
        fgw_sha256(bytes, digest);
        job->result =
            memcmp(digest, job->wanted->digest, sizeof digest) == 0 ? FGW_OK : FGW_ERR_CORRUPT;
    }
    fgw_group_files_release(&job->storage->files, file);
}

static enum fgw_err get_block_row(struct fgw_storage *storage, const uint8_t *digest,
                                  struct fgw_buf *value, struct fgw_block_row *out_row)
{
    struct fgw_row_key key = fgw_row_key_block(digest);
    enum fgw_err err = fgw_storage_index_get(storage, &key, value);
    return err == FGW_OK ? fgw_block_row_decode(fgw_buf_bytes(value), out_row) : err;
}

/* It may have been moved or freed since the page was read: only what still stands there counts. */
static bool still_there(struct fgw_storage *storage, const struct wanted *wanted)
{
    struct fgw_block_row row;
    struct fgw_buf value;
    fgw_buf_init(&value, 0);
    bool same = get_block_row(storage, wanted->digest, &value, &row) == FGW_OK &&
                row.group == wanted->row.group && row.offset == wanted->row.offset;
    fgw_buf_deinit(&value);
    return same;
}

static enum fgw_err check_one(struct fgw_storage *storage, struct fgw_storage_scrub *scrub,
                              const struct wanted *wanted, uint8_t *section)
{
    struct check_job job = {storage, wanted, section, FGW_OK};
    const struct fgw_block_row *row = &wanted->row;
    fgw_pool_run(storage->pool, run_check, &job);
    scrub->blocks++;
    scrub->bytes += row->len;
    if (job.result == FGW_ERR_CORRUPT && still_there(storage, wanted)) {
        struct fgw_storage_damage damage = {
            .what = "bytes",
            .cid = fgw_cid_make(row->codec, wanted->digest),
            .group = row->group,
            .offset = row->offset,
            .owner = row->owner_kind == FGW_BLOCK_OWNED ? &row->owner.address : NULL};
        tell(scrub, &damage);
        if (!row->bad) {
            fgw_storage_mark_bad(storage, wanted->digest, row->group, row->offset);
        }
        return FGW_OK;
    }
    return job.result == FGW_ERR_CORRUPT ? FGW_OK : job.result;
}

static int by_place(const void *a, const void *b)
{
    const struct fgw_block_row *left = &((const struct wanted *)a)->row;
    const struct fgw_block_row *right = &((const struct wanted *)b)->row;
    if (left->group != right->group) {
        return left->group < right->group ? -1 : 1;
    }
    return left->offset < right->offset ? -1 : left->offset > right->offset;
}

static enum fgw_err report_progress(const struct fgw_storage_scrub *scrub)
{
    bool go_on = scrub->on_progress == NULL || scrub->on_progress(scrub->context, scrub);
    return go_on ? FGW_OK : FGW_ERR_CANCELLED;
}

/* Bytes read so far take at least this long. */
static void keep_rate(const struct fgw_storage_scrub *scrub, uint64_t start_ms)
{
    if (scrub->bytes_per_s > 0) {
        uint64_t due_ms = (uint64_t)((double)scrub->bytes * 1000.0 / (double)scrub->bytes_per_s);
        uint64_t passed_ms = fgw_clock_boot_ms() - start_ms;
        if (due_ms > passed_ms) {
            fgw_fiber_sleep_ms(due_ms - passed_ms);
        }
    }
}

static enum fgw_err check_page(struct fgw_storage *storage, struct fgw_storage_scrub *scrub,
                               const struct fgw_index_page *page, uint64_t start_ms)
{
    struct wanted *wanted = fgw_xcalloc(page->count, sizeof *wanted);
    uint8_t *section = fgw_xmalloc(SECTION_MAX);
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; i < page->count && err == FGW_OK; i++) {
        memcpy(wanted[i].digest, page->rows[i].key.ptr + 1, sizeof wanted[i].digest);
        err = fgw_block_row_decode(page->rows[i].value, &wanted[i].row);
    }
    qsort(wanted, page->count, sizeof *wanted, by_place);
    for (size_t i = 0; i < page->count && err == FGW_OK; i++) {
        err = check_one(storage, scrub, &wanted[i], section);
        keep_rate(scrub, start_ms);
        if (err == FGW_OK) {
            err = report_progress(scrub);
        }
    }
    fgw_xfree(section);
    fgw_xfree(wanted);
    return err;
}

/* -- lists --------------------------------------------------------------------------------------- */

static bool slice_whole(struct fgw_storage *storage, const struct fgw_blob_row *blob, uint8_t kind,
                        uint64_t first, uint64_t count)
{
    struct fgw_row_key key = fgw_row_key_slice(blob->list_id, kind, first);
    struct fgw_buf value;
    fgw_buf_init(&value, 0);
    bool whole = fgw_storage_index_get(storage, &key, &value) == FGW_OK &&
                 value.len == 1 + count * FGW_SHA256_SIZE;
    fgw_buf_deinit(&value);
    return whole;
}

static bool list_whole(struct fgw_storage *storage, const struct fgw_blob_row *blob)
{
    const uint64_t counts[FGW_LIST_KINDS] = {blob->leaves, blob->nodes};
    for (size_t kind = 0; kind < FGW_LIST_KINDS; kind++) {
        for (uint64_t first = 0; first < counts[kind]; first += FGW_SLICE_BLOCKS) {
            uint64_t left = counts[kind] - first;
            if (!slice_whole(storage, blob, (uint8_t)kind, first,
                             left < FGW_SLICE_BLOCKS ? left : FGW_SLICE_BLOCKS)) {
                return false;
            }
        }
    }
    return true;
}

static enum fgw_err check_blobs(struct fgw_storage *storage, struct fgw_storage_scrub *scrub,
                                const struct fgw_index_page *page)
{
    struct fgw_buf value;
    fgw_buf_init(&value, 0);
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; i < page->count && err == FGW_OK; i++) {
        struct fgw_blob_row blob;
        const uint8_t *digest = page->rows[i].key.ptr + 1;
        struct fgw_row_key key = fgw_row_key_blob(digest);
        err = fgw_blob_row_decode(page->rows[i].value, &blob);
        scrub->blobs++;
        if (err == FGW_OK && !list_whole(storage, &blob) &&
            fgw_storage_index_get(storage, &key, &value) == FGW_OK) {
            tell(scrub, &(struct fgw_storage_damage){
                            .what = "list", .cid = fgw_cid_make(FGW_CODEC_DAG_PB, digest)});
        }
    }
    fgw_buf_deinit(&value);
    return err;
}

/* -- the log ------------------------------------------------------------------------------------- */

struct log_job {
    struct fgw_storage *storage;
    struct fgw_storage_scrub *scrub;
    uint64_t group;
    uint64_t end;
    uint64_t damaged_at; /* 0: whole */
    enum fgw_err result;
};

static void walk_log(struct log_job *job, struct fgw_group_file *file)
{
    struct fgw_datadir *dir = &job->storage->dir;
    struct fgw_record_opener opener;
    struct fgw_record_head head;
    struct fgw_log_scan scan;
    struct fgw_log_batch batch;
    struct fgw_buf opening;
    uint64_t first = 0;
    fgw_record_opener_init(&opener, &dir->keyring,
                           (const uint8_t(*)[FGW_RECORD_ID_SIZE])dir->store_ids,
                           dir->store_id_count);
    fgw_buf_init(&opening, 0);
    job->result = fgw_group_read_opening(file->fd, job->group, &opener, &opening, &head, &first);
    if (job->result == FGW_OK) {
        fgw_log_scan_init(&scan, file->fd, job->group, job->end, first, &opener);
        while ((job->result = fgw_log_scan_next(&scan, &batch)) == FGW_OK) {
            job->scrub->log_batches++;
        }
        job->damaged_at = scan.offset;
        fgw_log_scan_deinit(&scan);
    }
    fgw_buf_deinit(&opening);
    job->result = job->result == FGW_ERR_END ? FGW_OK : job->result;
}

static void run_log(void *arg)
{
    struct log_job *job = arg;
    struct fgw_group_file *file;
    job->result = fgw_group_files_acquire(&job->storage->files, job->group, &file);
    if (job->result == FGW_OK) {
        walk_log(job, file);
        fgw_group_files_release(&job->storage->files, file);
    } else if (job->result == FGW_ERR_NOT_FOUND) {
        job->result = FGW_ERR_CORRUPT;
    }
}

static void run_still_listed(void *arg)
{
    struct log_job *job = arg;
    struct fgw_group_row row;
    job->result = fgw_storage_group_row(job->storage, job->group, &row);
}

/* It may have been given up since the page was read. */
static bool still_listed(const struct log_job *damaged)
{
    struct log_job job = *damaged;
    fgw_pool_run(job.storage->pool, run_still_listed, &job);
    return job.result != FGW_ERR_NOT_FOUND;
}

/* Group rows: sealed log groups end where their row says, the open one where the committer is. */
static enum fgw_err check_logs(struct fgw_storage *storage, struct fgw_storage_scrub *scrub,
                               const struct fgw_index_page *page)
{
    struct fgw_committer_stats committer;
    enum fgw_err err = FGW_OK;
    fgw_committer_stats(storage->committer, &committer);
    for (size_t i = 0; i < page->count && err == FGW_OK; i++) {
        struct fgw_group_row row;
        struct log_job job = {.storage = storage, .scrub = scrub};
        err = fgw_group_row_decode(page->rows[i].value, &row);
        job.group = fgw_get_u64be(page->rows[i].key.ptr + 1);
        job.end = job.group == committer.log_group ? committer.log_end : row.end;
        if (err != FGW_OK || row.kind != FGW_GROUP_LOG || job.end == 0) {
            continue;
        }
        fgw_pool_run(storage->pool, run_log, &job);
        if (job.result == FGW_ERR_CORRUPT && !still_listed(&job)) {
            continue;
        }
        if (job.result == FGW_ERR_CORRUPT) {
            tell(scrub, &(struct fgw_storage_damage){
                            .what = "log record", .group = job.group, .offset = job.damaged_at});
        } else {
            err = job.result;
        }
    }
    return err;
}

/* -- checkpoints --------------------------------------------------------------------------------- */

struct checkpoint_job {
    struct fgw_storage *storage;
    uint64_t id;
    uint64_t damaged_at;
    enum fgw_err result;
};

static void run_checkpoint(void *arg)
{
    struct checkpoint_job *job = arg;
    struct fgw_datadir *dir = &job->storage->dir;
    struct fgw_record_opener opener;
    struct fgw_checkpoint_reader *reader = NULL;
    struct fgw_checkpoint_row row;
    fgw_record_opener_init(&opener, &dir->keyring,
                           (const uint8_t(*)[FGW_RECORD_ID_SIZE])dir->store_ids,
                           dir->store_id_count);
    job->result = fgw_checkpoint_reader_open(dir, job->id, &opener, true, &reader);
    if (reader != NULL) {
        while ((job->result = fgw_checkpoint_reader_next(reader, &row)) == FGW_OK) {
        }
        job->damaged_at = fgw_checkpoint_reader_offset(reader);
    }
    fgw_checkpoint_reader_close(reader);
}

struct list_job {
    struct fgw_storage *storage;
    struct fgw_checkpoint_list list;
    enum fgw_err result;
};

static void run_list(void *arg)
{
    struct list_job *job = arg;
    job->result = fgw_checkpoint_list_read(&job->list, &job->storage->dir);
}

/* Those that are there when it begins; one that was replaced meanwhile is passed over. */
static enum fgw_err check_checkpoints(struct fgw_storage *storage, struct fgw_storage_scrub *scrub)
{
    struct list_job job = {.storage = storage};
    fgw_pool_run(storage->pool, run_list, &job);
    enum fgw_err err = job.result;
    for (size_t i = 0; i < job.list.count && err == FGW_OK; i++) {
        struct checkpoint_job one = {.storage = storage, .id = job.list.ids[i]};
        fgw_pool_run(storage->pool, run_checkpoint, &one);
        scrub->checkpoints += one.result == FGW_ERR_END ? 1 : 0;
        if (one.result == FGW_ERR_CORRUPT) {
            tell(scrub, &(struct fgw_storage_damage){
                            .what = "checkpoint", .group = one.id, .offset = one.damaged_at});
        } else if (one.result != FGW_ERR_END && one.result != FGW_ERR_NOT_FOUND) {
            err = one.result;
        }
    }
    fgw_checkpoint_list_free(&job.list);
    return err;
}

/* -- all of it ----------------------------------------------------------------------------------- */

typedef enum fgw_err page_fn(struct fgw_storage *storage, struct fgw_storage_scrub *scrub,
                             const struct fgw_index_page *page, uint64_t start_ms);

static enum fgw_err blobs_of_page(struct fgw_storage *storage, struct fgw_storage_scrub *scrub,
                                  const struct fgw_index_page *page, uint64_t start_ms)
{
    (void)start_ms;
    return check_blobs(storage, scrub, page);
}

static enum fgw_err logs_of_page(struct fgw_storage *storage, struct fgw_storage_scrub *scrub,
                                 const struct fgw_index_page *page, uint64_t start_ms)
{
    (void)start_ms;
    return check_logs(storage, scrub, page);
}

/* Calls fn for each page of a table of the index. */
static enum fgw_err each_page(struct fgw_storage *storage, struct fgw_storage_scrub *scrub,
                              char letter, size_t page_rows, page_fn *fn)
{
    struct fgw_row_key lower = {.bytes = {(uint8_t)letter}, .len = 1};
    struct fgw_row_key upper = {.bytes = {(uint8_t)(letter + 1)}, .len = 1};
    struct fgw_index_page page;
    uint64_t start_ms = fgw_clock_boot_ms();
    enum fgw_err err;
    fgw_index_page_init(&page);
    do {
        struct fgw_index_range range = {fgw_row_key_bytes(&lower), fgw_row_key_bytes(&upper),
                                        page_rows};
        err = fgw_index_page_read(&page, storage->pool, storage->kv, &range);
        if (err == FGW_OK) {
            err = fn(storage, scrub, &page, start_ms);
        }
        if (err == FGW_OK) {
            err = report_progress(scrub);
        }
        if (page.count > 0) {
            struct fgw_bytes last = page.rows[page.count - 1].key;
            memcpy(lower.bytes, last.ptr, last.len);
            lower.bytes[last.len] = 0;
            lower.len = last.len + 1;
        }
    } while (err == FGW_OK && page.more);
    fgw_index_page_deinit(&page);
    return err;
}

enum fgw_err fgw_storage_scrub(struct fgw_storage *storage, struct fgw_storage_scrub *scrub)
{
    enum fgw_err err = check_checkpoints(storage, scrub);
    if (err == FGW_OK) {
        err = each_page(storage, scrub, 'g', BLOBS_PAGE, logs_of_page);
    }
    if (err == FGW_OK) {
        err = each_page(storage, scrub, 'B', BLOBS_PAGE, blobs_of_page);
    }
    if (err == FGW_OK) {
        err = each_page(storage, scrub, 'b', BLOCKS_PAGE, check_page);
    }
    return err;
}
