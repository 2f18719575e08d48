/* sweep.c: see sweep.h. A pass is one walk over all holds that counts what the metadata says is
 * absent, and, when some of it is due and the count is believable, a second walk that asks about
 * these once more and releases them.
 *
 * Crash argument: a release is one logged operation per page. Candidates are written to a file that
 * may be lost: it says since when a hold has been ownerless, never that it may go without being
 * asked about again. Between the last answer of the metadata and the release an owner cannot come
 * to rely on the hold unseen: relying on it strikes it off the candidates before the operation
 * reaches the committer, and the release looks there on the committer's thread.
 */
#include "storage/sweep.h"

#include "base/digest.h"
#include "base/fs.h"
#include "base/log.h"
#include "storage/storage_internal.h"
#include "storage/txn.h"

enum {
    MIN_AGE_MS = 2 * 3600 * 1000, /* no hold goes sooner after it was taken */
    FIRST_MS = 10 * 60 * 1000,    /* after opening: other work comes first */
    RETRY_MS = 10 * 60 * 1000,    /* after a pass that broke off */
    CALL_MS = 3600 * 1000,        /* at most, between looks at the clock */
    PAGE = 256,                   /* holds */
    PAUSE_MS = 20,                /* between pages, so that others get the disk and the metadata */
    BELIEVABLE_MIN = 1000,        /* ownerless holds */
    BELIEVABLE_PART = 1000,       /* or one in so many */
    FILE_MAX = 64 * 1024 * 1024
};

struct pass {
    struct fgw_storage *storage;
    struct fgw_sweep *sweep;
    fgw_storage_live_fn *live;
    void *context;
    bool gentle;
    uint32_t number;
    uint64_t held;
    uint64_t ownerless;
    uint64_t due;
    uint64_t freed;
};

/* -- who takes holds ----------------------------------------------------------------------------- */

static void lock(struct fgw_sweep *sweep)
{
    (void)pthread_mutex_lock(&sweep->lock.mutex);
}

static void unlock(struct fgw_sweep *sweep)
{
    (void)pthread_mutex_unlock(&sweep->lock.mutex);
}

void fgw_sweep_note_taken(struct fgw_storage *storage, const uint8_t owner_id[FGW_STORAGE_ID_SIZE])
{
    struct fgw_sweep *sweep = &storage->sweep;
    if (!atomic_load(&sweep->watching)) {
        return;
    }
    lock(sweep);
    fgw_sweep_erase_owner(&sweep->lock.memory.table, owner_id);
    if (sweep->lock.asking != NULL &&
        memcmp(sweep->lock.asking, owner_id, FGW_STORAGE_ID_SIZE) == 0) {
        sweep->lock.taken_meanwhile = true;
    }
    unlock(sweep);
}

void fgw_storage_hold_renewed(struct fgw_storage *storage,
                              const uint8_t owner_id[FGW_STORAGE_ID_SIZE])
{
    fgw_sweep_note_taken(storage, owner_id);
}

void fgw_sweep_note_writer(struct fgw_storage *storage, struct fgw_sweep_writer *writer,
                           const uint8_t owner_id[FGW_STORAGE_ID_SIZE])
{
    struct fgw_sweep *sweep = &storage->sweep;
    writer->owner_id = owner_id;
    lock(sweep);
    fgw_list_push_back(&sweep->lock.writers, &writer->node);
    unlock(sweep);
    fgw_sweep_note_taken(storage, owner_id);
}

void fgw_sweep_forget_writer(struct fgw_storage *storage, struct fgw_sweep_writer *writer)
{
    fgw_sweep_note_taken(storage, writer->owner_id);
    lock(&storage->sweep);
    fgw_list_remove(&writer->node);
    unlock(&storage->sweep);
}

/* Locked. */
static bool has_writer(const struct fgw_sweep *sweep, const uint8_t *owner_id)
{
    const struct fgw_list *writers = &sweep->lock.writers;
    for (const struct fgw_list *node = writers->next; node != writers; node = node->next) {
        const struct fgw_sweep_writer *writer =
            FGW_CONTAINER_OF(node, struct fgw_sweep_writer, node);
        if (memcmp(writer->owner_id, owner_id, FGW_STORAGE_ID_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

/* -- times --------------------------------------------------------------------------------------- */

static uint64_t min_age_ms(const struct fgw_storage *storage)
{
    return storage->options.sweep_min_age_ms != 0 ? storage->options.sweep_min_age_ms
                                                  : (uint64_t)MIN_AGE_MS;
}

static uint64_t grace_ms(const struct fgw_storage *storage)
{
    uint64_t age_ms = min_age_ms(storage);
    return storage->options.sweep_grace_ms > age_ms ? storage->options.sweep_grace_ms : age_ms;
}

static bool is_due(const struct fgw_storage *storage, const struct fgw_sweep_candidate *candidate)
{
    uint64_t now_ms = fgw_storage_running_ms(storage);
    return now_ms >= candidate->found_ms + grace_ms(storage) &&
           now_ms >= storage->running_base_ms + min_age_ms(storage);
}

/* -- asking -------------------------------------------------------------------------------------- */

static struct fgw_sweep_candidate candidate_of(const struct fgw_storage_hold_seen *seen)
{
    uint8_t name[8 + FGW_CID_SIZE];
    uint8_t digest[FGW_SHA256_SIZE];
    struct fgw_sweep_candidate candidate = {0};
    fgw_put_u64be(name, seen->extent);
    memcpy(name + 8, seen->root.bytes, FGW_CID_SIZE);
    fgw_sha256(fgw_bytes(name, sizeof name), digest);
    memcpy(candidate.owner_id, seen->owner.owner_id, sizeof candidate.owner_id);
    memcpy(candidate.tag, digest, sizeof candidate.tag);
    return candidate;
}

static enum fgw_err ask_metadata(const struct pass *pass, const struct fgw_storage_hold_seen *seen,
                                 bool *out_absent)
{
    enum fgw_storage_liveness live = FGW_STORAGE_UNDECIDED;
    enum fgw_err err = pass->live(pass->context, &seen->owner, &seen->root, &live);
    *out_absent = err == FGW_OK && live == FGW_STORAGE_ABSENT;
    return err;
}

/* Absent, and nobody took it while the metadata was asked. */
static enum fgw_err ask(const struct pass *pass, const struct fgw_storage_hold_seen *seen,
                        bool *out_absent)
{
    struct fgw_sweep *sweep = pass->sweep;
    lock(sweep);
    bool written = has_writer(sweep, seen->owner.owner_id);
    sweep->lock.asking = seen->owner.owner_id;
    sweep->lock.taken_meanwhile = false;
    unlock(sweep);
    *out_absent = false;
    enum fgw_err err = written ? FGW_OK : ask_metadata(pass, seen, out_absent);
    lock(sweep);
    *out_absent = *out_absent && !sweep->lock.taken_meanwhile;
    sweep->lock.asking = NULL;
    unlock(sweep);
    return err;
}

/* -- the first walk: counting -------------------------------------------------------------------- */

/* It may have been released since the page was read. */
static enum fgw_err still_held(struct fgw_storage *storage,
                               const struct fgw_storage_hold_seen *seen, bool *out_held)
{
    struct fgw_buf value;
    struct fgw_row_key key;
    fgw_buf_init(&value, 0);
    *out_held = true;
    enum fgw_err err = FGW_OK;
    if (fgw_cid_codec(&seen->root) != FGW_CODEC_RAW) {
        key = fgw_row_key_hold(seen->owner.owner_id, seen->extent);
        err = fgw_storage_index_get(storage, &key, &value);
    } else {
        struct fgw_block_row row;
        key = fgw_row_key_block(fgw_cid_digest(&seen->root));
        err = fgw_storage_index_get(storage, &key, &value);
        if (err == FGW_OK) {
            err = fgw_block_row_decode(fgw_buf_bytes(&value), &row);
        }
        if (err == FGW_OK &&
            (row.owner_kind != FGW_BLOCK_OWNED || row.owner.extent != seen->extent ||
             memcmp(row.owner.address.owner_id, seen->owner.owner_id, FGW_STORAGE_ID_SIZE) != 0)) {
            key = fgw_row_key_ref(fgw_cid_digest(&seen->root), seen->owner.owner_id, seen->extent);
            err = fgw_storage_index_get(storage, &key, &value);
        }
    }
    *out_held = err == FGW_OK;
    fgw_buf_deinit(&value);
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

static void note_answer(struct pass *pass, const struct fgw_storage_hold_seen *seen, bool absent)
{
    struct fgw_sweep *sweep = pass->sweep;
    struct fgw_sweep_table *table = &sweep->lock.memory.table;
    struct fgw_sweep_candidate candidate = candidate_of(seen);
    candidate.found_ms = fgw_storage_running_ms(pass->storage) + 1; /* 0 means none */
    lock(sweep);
    if (absent) {
        struct fgw_sweep_candidate *entered = fgw_sweep_enter(table, &candidate);
        pass->ownerless++;
        if (entered != NULL) {
            entered->pass = pass->number;
            pass->due += is_due(pass->storage, entered) ? 1 : 0;
        }
    } else {
        struct fgw_sweep_candidate *entered = fgw_sweep_find(table, &candidate);
        if (entered != NULL) {
            fgw_sweep_erase(table, entered);
        }
    }
    sweep->lock.status.held = pass->held;
    sweep->lock.status.ownerless = pass->ownerless;
    unlock(sweep);
}

static enum fgw_err count_page(struct pass *pass, const struct fgw_storage_hold_seen *seen,
                               size_t count)
{
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; i < count && err == FGW_OK; i++) {
        bool absent = false;
        bool held = true;
        pass->held++;
        err = ask(pass, &seen[i], &absent);
        if (err == FGW_OK && absent) {
            err = still_held(pass->storage, &seen[i], &held);
        }
        if (err == FGW_OK) {
            note_answer(pass, &seen[i], absent && held);
        }
    }
    return err;
}

/* -- the second walk: releasing ------------------------------------------------------------------ */

struct leaving {
    struct pass *pass;
    const struct fgw_storage_hold_seen *seen[PAGE];
    size_t count;
    size_t released;
};

/* On the committer's thread: whoever relies on a hold has struck it off before. */
static enum fgw_err evaluate_release(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct leaving *leaving = op->context;
    struct fgw_sweep *sweep = leaving->pass->sweep;
    leaving->released = 0;
    lock(sweep);
    for (size_t i = 0; i < leaving->count; i++) {
        const struct fgw_storage_hold_seen *seen = leaving->seen[i];
        struct fgw_sweep_candidate candidate = candidate_of(seen);
        if (fgw_sweep_find(&sweep->lock.memory.table, &candidate) != NULL &&
            !has_writer(sweep, seen->owner.owner_id)) {
            fgw_storage_txn_release(txn, seen->owner.owner_id, seen->extent, &seen->root);
            leaving->released++;
        }
    }
    unlock(sweep);
    return FGW_OK;
}

static enum fgw_err release(struct leaving *leaving)
{
    struct pass *pass = leaving->pass;
    struct fgw_storage_op op = {
        .name = "sweep", .evaluate = evaluate_release, .context = leaving, .frees_space = true};
    enum fgw_err err = fgw_storage_commit(pass->storage, &op);
    if (err != FGW_OK) {
        return err;
    }
    pass->freed += leaving->released;
    lock(pass->sweep);
    for (size_t i = 0; i < leaving->count; i++) {
        struct fgw_sweep_candidate candidate = candidate_of(leaving->seen[i]);
        struct fgw_sweep_candidate *entered =
            fgw_sweep_find(&pass->sweep->lock.memory.table, &candidate);
        if (entered != NULL) {
            fgw_sweep_erase(&pass->sweep->lock.memory.table, entered);
        }
    }
    pass->sweep->lock.status.freed = pass->freed;
    pass->sweep->lock.status.freed_total += leaving->released;
    unlock(pass->sweep);
    return FGW_OK;
}

static bool may_leave(const struct pass *pass, const struct fgw_storage_hold_seen *seen)
{
    struct fgw_sweep *sweep = pass->sweep;
    struct fgw_sweep_candidate candidate = candidate_of(seen);
    lock(sweep);
    const struct fgw_sweep_candidate *entered =
        fgw_sweep_find(&sweep->lock.memory.table, &candidate);
    bool due = entered != NULL && entered->pass == pass->number && is_due(pass->storage, entered);
    unlock(sweep);
    return due;
}

static enum fgw_err release_page(struct pass *pass, const struct fgw_storage_hold_seen *seen,
                                 size_t count)
{
    struct leaving *leaving = fgw_xcalloc(1, sizeof *leaving);
    enum fgw_err err = FGW_OK;
    leaving->pass = pass;
    for (size_t i = 0; i < count && err == FGW_OK; i++) {
        bool absent = false;
        if (may_leave(pass, &seen[i])) {
            err = ask(pass, &seen[i], &absent);
        }
        if (err == FGW_OK && absent) {
            leaving->seen[leaving->count++] = &seen[i];
        }
    }
    if (err == FGW_OK && leaving->count > 0) {
        err = release(leaving);
    }
    fgw_xfree(leaving);
    return err;
}

/* -- a pass -------------------------------------------------------------------------------------- */

typedef enum fgw_err page_fn(struct pass *pass, const struct fgw_storage_hold_seen *seen,
                             size_t count);

static enum fgw_err walk(struct pass *pass, page_fn *on_page)
{
    struct fgw_storage *storage = pass->storage;
    struct fgw_storage_hold_seen *seen;
    struct fgw_arena arena;
    struct fgw_buf cursor;
    size_t count = 0;
    enum fgw_err err;
    fgw_arena_init(&arena, 0);
    fgw_buf_init(&cursor, 0);
    do {
        fgw_arena_reset(&arena);
        err = fgw_storage_holds_next(storage, &cursor, &arena, PAGE, &seen, &count);
        if (err == FGW_OK) {
            err = on_page(pass, seen, count);
        }
        if (err == FGW_OK && pass->gentle && fgw_care_stopping(storage->care)) {
            err = FGW_ERR_CANCELLED;
        }
        if (err == FGW_OK && pass->gentle && !atomic_load(&pass->sweep->wanted)) {
            fgw_fiber_sleep_ms(PAUSE_MS);
        }
    } while (err == FGW_OK && count > 0);
    fgw_buf_deinit(&cursor);
    fgw_arena_deinit(&arena);
    return err;
}

struct save_job {
    struct fgw_storage *storage;
    struct fgw_buf file;
    enum fgw_err result;
};

static void run_save(void *arg)
{
    struct save_job *job = arg;
    job->result = fgw_fs_create_durable(job->storage->dir.tmp, job->storage->dir.root, "sweep",
                                        fgw_buf_bytes(&job->file), 0600, NULL);
}

/* What is not written now is found again later. */
static void save(struct fgw_storage *storage)
{
    struct fgw_sweep *sweep = &storage->sweep;
    struct save_job job = {.storage = storage};
    fgw_buf_init(&job.file, 0);
    lock(sweep);
    fgw_sweep_encode(&sweep->lock.memory, storage->dir.store_ids[0], &job.file);
    unlock(sweep);
    fgw_pool_run(storage->pool, run_save, &job);
    fgw_buf_deinit(&job.file);
    if (job.result != FGW_OK) {
        fgw_log_warn("storage", "the sweeper's candidates cannot be written: %s",
                     fgw_err_text(job.result));
    }
}

/* The clock that ages are taken from is only remembered with a batch. */
static void log_clock(struct fgw_storage *storage)
{
    struct fgw_buf nothing;
    fgw_buf_init(&nothing, 0);
    (void)!fgw_storage_commit_items(storage, "clock", &nothing);
    fgw_buf_deinit(&nothing);
}

/* Locked: of the candidates found by this pass, those that somebody approved. */
static uint64_t approved_count(const struct pass *pass)
{
    const struct fgw_sweep_memory *memory = &pass->sweep->lock.memory;
    uint64_t count = 0;
    for (size_t i = 0; i < memory->table.capacity; i++) {
        const struct fgw_sweep_candidate *candidate = &memory->table.slots[i];
        count += candidate->found_ms != 0 && candidate->pass == pass->number &&
                 candidate->found_ms <= memory->approved_ms;
    }
    return count;
}

/* Is the count one that lost uploads explain? A database that was set back makes today's objects
 * look ownerless. */
static bool judge(struct pass *pass)
{
    struct fgw_sweep *sweep = pass->sweep;
    uint64_t part = pass->held / BELIEVABLE_PART;
    uint64_t limit = part > BELIEVABLE_MIN ? part : (uint64_t)BELIEVABLE_MIN;
    lock(sweep);
    fgw_sweep_prune(&sweep->lock.memory.table, pass->number);
    uint64_t approved = approved_count(pass);
    bool alarm = pass->ownerless - approved > limit;
    bool news = alarm && !sweep->lock.memory.alarm;
    sweep->lock.memory.alarm = alarm;
    sweep->lock.memory.ownerless = pass->ownerless;
    sweep->lock.memory.last_ms = fgw_storage_running_ms(pass->storage) + 1;
    sweep->lock.status.limit = limit;
    sweep->lock.status.alarm = alarm;
    unlock(sweep);
    if (news) {
        fgw_log_error("storage",
                      "%llu of %llu holds have no owner, more than %llu: nothing is freed before "
                      "`fgw sweep --approve`; is the database an older state than this directory?",
                      (unsigned long long)pass->ownerless, (unsigned long long)pass->held,
                      (unsigned long long)limit);
    }
    return !alarm;
}

static enum fgw_err run_pass(struct pass *pass)
{
    enum fgw_err err = walk(pass, count_page);
    if (err != FGW_OK) {
        return err;
    }
    bool believable = judge(pass);
    bool forbidden =
        fgw_storage_running_ms(pass->storage) < atomic_load(&pass->sweep->free_nothing_until_ms);
    if (believable && !forbidden && pass->due > 0) {
        err = walk(pass, release_page);
    }
    log_clock(pass->storage);
    save(pass->storage);
    if (pass->ownerless > 0) {
        fgw_log_info("storage", "sweep: holds=%llu ownerless=%llu freed=%llu",
                     (unsigned long long)pass->held, (unsigned long long)pass->ownerless,
                     (unsigned long long)pass->freed);
    }
    return err;
}

static void set_watching(struct fgw_sweep *sweep, bool asking)
{
    lock(sweep);
    atomic_store(&sweep->watching, asking || sweep->lock.memory.table.count > 0);
    unlock(sweep);
}

static void begin_status(struct fgw_sweep *sweep)
{
    lock(sweep);
    sweep->lock.status.running = true;
    sweep->lock.status.held = 0;
    sweep->lock.status.ownerless = 0;
    sweep->lock.status.freed = 0;
    unlock(sweep);
}

static void end_status(struct fgw_sweep *sweep, enum fgw_err err)
{
    lock(sweep);
    sweep->lock.status.running = false;
    sweep->lock.status.failed = err;
    sweep->lock.status.passes++;
    unlock(sweep);
}

static enum fgw_err sweep_once(struct fgw_storage *storage, fgw_storage_live_fn *live,
                               void *context, bool gentle)
{
    struct fgw_sweep *sweep = &storage->sweep;
    if (atomic_exchange(&sweep->busy, true)) {
        return FGW_ERR_IN_USE;
    }
    struct pass pass = {.storage = storage,
                        .sweep = sweep,
                        .live = live,
                        .context = context,
                        .gentle = gentle,
                        .number = ++sweep->pass};
    begin_status(sweep);
    set_watching(sweep, true);
    enum fgw_err err = run_pass(&pass);
    set_watching(sweep, false);
    end_status(sweep, err);
    atomic_store(&sweep->busy, false);
    return err;
}

enum fgw_err fgw_storage_sweep(struct fgw_storage *storage, fgw_storage_live_fn *live,
                               void *context)
{
    return sweep_once(storage, live, context, false);
}

/* -- asked for and in care ----------------------------------------------------------------------- */

void fgw_storage_sweep_start(struct fgw_storage *storage)
{
    atomic_store(&storage->sweep.wanted, true);
    fgw_care_kick(storage->care, FGW_CARE_SWEEP);
}

void fgw_storage_sweep_approve(struct fgw_storage *storage)
{
    struct fgw_sweep *sweep = &storage->sweep;
    lock(sweep);
    sweep->lock.memory.approved_ms = fgw_storage_running_ms(storage) + 1;
    sweep->lock.memory.alarm = false;
    sweep->lock.status.alarm = false;
    uint64_t count = sweep->lock.memory.table.count;
    unlock(sweep);
    log_clock(storage);
    save(storage);
    fgw_log_warn("storage", "sweep approved: candidates=%llu", (unsigned long long)count);
}

void fgw_storage_sweep_status(struct fgw_storage *storage,
                              struct fgw_storage_sweep_status *out_status)
{
    struct fgw_sweep *sweep = &storage->sweep;
    lock(sweep);
    *out_status = sweep->lock.status;
    out_status->candidates = sweep->lock.memory.table.count;
    unlock(sweep);
    out_status->grace_ms = grace_ms(storage);
    out_status->wanted = atomic_load(&sweep->wanted);
}

void fgw_storage_free_nothing_until(struct fgw_storage *storage, uint64_t running_ms)
{
    atomic_store(&storage->sweep.free_nothing_until_ms, running_ms);
}

/* Running time at which the next pass is due. */
static uint64_t next_pass_ms(struct fgw_storage *storage)
{
    struct fgw_sweep *sweep = &storage->sweep;
    uint64_t grace = grace_ms(storage);
    uint64_t first = storage->running_base_ms + (grace < FIRST_MS ? grace : (uint64_t)FIRST_MS);
    lock(sweep);
    uint64_t last = sweep->lock.memory.last_ms;
    unlock(sweep);
    uint64_t next = last == 0 ? first : last + grace;
    return next > first ? next : first;
}

uint64_t fgw_sweep_care(struct fgw_storage *storage, fgw_storage_live_fn *live, void *context)
{
    struct fgw_sweep *sweep = &storage->sweep;
    uint64_t now_ms = fgw_storage_running_ms(storage);
    uint64_t next_ms = next_pass_ms(storage);
    bool wanted = atomic_load(&sweep->wanted);
    if (!wanted && now_ms < next_ms) {
        return next_ms - now_ms < CALL_MS ? next_ms - now_ms : (uint64_t)CALL_MS;
    }
    enum fgw_err err = sweep_once(storage, live, context, true);
    if (wanted) {
        atomic_store(&sweep->wanted, false);
    }
    if (err != FGW_OK && err != FGW_ERR_CANCELLED) {
        fgw_log_warn("storage", "the sweep broke off: %s", fgw_err_text(err));
    }
    return err == FGW_OK ? 0 : (uint64_t)RETRY_MS;
}

/* -- life ---------------------------------------------------------------------------------------- */

void fgw_sweep_init(struct fgw_sweep *sweep)
{
    *sweep = (struct fgw_sweep){0};
    (void)pthread_mutex_init(&sweep->lock.mutex, NULL);
    fgw_list_init(&sweep->lock.writers);
}

void fgw_sweep_deinit(struct fgw_sweep *sweep)
{
    FGW_CHECK(fgw_list_empty(&sweep->lock.writers));
    fgw_sweep_table_free(&sweep->lock.memory.table);
    (void)pthread_mutex_destroy(&sweep->lock.mutex);
}

void fgw_sweep_load(struct fgw_storage *storage)
{
    struct fgw_sweep *sweep = &storage->sweep;
    struct fgw_sweep_memory memory = {0};
    struct fgw_buf file;
    fgw_buf_init(&file, FILE_MAX);
    enum fgw_err err = fgw_fs_read_file(storage->dir.root, "sweep", &file);
    if (err == FGW_OK) {
        err = fgw_sweep_decode(fgw_buf_bytes(&file), storage->dir.store_ids[0], &memory);
    }
    fgw_buf_deinit(&file);
    /* a directory set back to an older state: its clock is, too */
    if (err == FGW_OK && memory.last_ms > storage->running_base_ms + 1) {
        fgw_sweep_table_free(&memory.table);
        memory = (struct fgw_sweep_memory){0};
    }
    if (err != FGW_OK && err != FGW_ERR_NOT_FOUND) {
        fgw_log_warn("storage", "the sweeper's candidates cannot be read (%s): it begins anew",
                     fgw_err_text(err));
        return;
    }
    sweep->lock.memory = memory;
    sweep->lock.status.alarm = memory.alarm;
    sweep->lock.status.ownerless = memory.ownerless;
    atomic_store(&sweep->watching, memory.table.count > 0);
}
