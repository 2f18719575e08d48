/* committer.c: see committer.h. Requests reach the committer over a lock-free stack; it sleeps on a
 * condition only when there is nothing to do, so a push costs no system call while it is busy. */
#include "storage/committer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "storage/apply.h"
#include "storage/storage_internal.h"
#include "storage/txn.h"

enum {
    BATCH_OPERATIONS_MAX = 1000,
    BATCH_BYTES_MAX = 2 * 1024 * 1024,
    OPERATION_ITEMS_MAX = 32 * 1024 * 1024, /* of one operation; a batch has FGW_RECORD_PARTS_MAX */
    LOOPS_MAX = 64,
    INDEX_SYNC_BYTES = 64 * 1024 * 1024,
    RETRY_MS = 500,                /* between tries to open an index again that failed */
    REOPEN_BYTES = 4 * 1024 * 1024 /* that must be free for it, besides what its memory holds */
};

/* Requests in order. */
struct queue {
    struct fgw_request *first;
    struct fgw_request *last;
};

enum batch_state { BATCH_FREE, BATCH_BUILDING, BATCH_SYNCED, BATCH_APPLIED };

struct batch {
    struct batch *next; /* of the applier's queue */
    _Atomic int state;  /* enum batch_state */
    struct fgw_overlay overlay;
    struct fgw_buf items;
    struct iovec *blocks;
    int block_count;
    int block_capacity;
    uint64_t block_bytes;
    unsigned operations;
    bool tried; /* to be applied, in vain; its operations are answered */
    struct queue accepted;
    struct queue refused; /* on grounds of this batch: answered when it is synced */
    struct fgw_apply_input input;
};

struct fgw_committer {
    struct fgw_storage *storage;
    struct fgw_log log;
    struct fgw_apply *apply;
    pthread_t thread;
    pthread_t applier;
    _Atomic(struct fgw_request *) inbox; /* newest first */
    _Atomic bool sleeping;
    struct {
        pthread_mutex_t mutex;
        pthread_cond_t wakeup;
        bool stopping;
    } sleep;
    /* the committer's own */
    struct queue queue;
    struct queue deferred; /* until all batches in flight are applied */
    struct fgw_storage_txn txn;
    struct batch *batches;                          /* FGW_BATCHES_IN_FLIGHT + 1 */
    struct batch *in_flight[FGW_BATCHES_IN_FLIGHT]; /* oldest first */
    size_t in_flight_count;
    struct {
        pthread_mutex_t mutex;
        pthread_cond_t work;
        pthread_cond_t done;
        struct batch *first;
        struct batch *last;
        unsigned pending; /* handed over and not applied */
        bool stuck;       /* the applier waits for the index to be writable again */
        bool stopping;
    } handover;
    _Atomic int failed; /* enum fgw_err: why durable batches cannot be applied at present */
    struct {
        _Atomic uint64_t batches, operations, applied_batch, last_batch, log_group, log_end;
        _Atomic uint64_t record_bytes;
        _Atomic bool read_only;
    } stats;
};

/* -- queues and answers ------------------------------------------------------------------------- */

static void enqueue(struct queue *queue, struct fgw_request *request)
{
    request->next = NULL;
    if (queue->last == NULL) {
        queue->first = request;
    } else {
        queue->last->next = request;
    }
    queue->last = request;
}

static struct fgw_request *dequeue(struct queue *queue)
{
    struct fgw_request *request = queue->first;
    if (request != NULL) {
        queue->first = request->next;
        queue->last = queue->first == NULL ? NULL : queue->last;
    }
    return request;
}

static void prepend_all(struct queue *to, struct queue *from)
{
    if (from->first == NULL) {
        return;
    }
    from->last->next = to->first;
    to->last = to->last == NULL ? from->last : to->last;
    to->first = from->first;
    *from = (struct queue){0};
}

static void on_done(struct fgw_task *task)
{
    fgw_wait_signal(&FGW_CONTAINER_OF(task, struct fgw_request, task)->wait);
}

struct chain {
    struct fgw_loop *loop;
    struct fgw_task *first;
    struct fgw_task *last;
};

/* Answers all of a queue, waking each loop once. A request is gone once its chain is posted. */
static void answer_all(struct queue *queue)
{
    struct chain chains[LOOPS_MAX];
    size_t count = 0;
    struct fgw_request *request;
    while ((request = dequeue(queue)) != NULL) {
        size_t i = 0;
        request->task.run = on_done;
        request->task.next = NULL;
        while (i < count && chains[i].loop != request->loop) {
            i++;
        }
        if (i == count && count == LOOPS_MAX) {
            fgw_loop_post(request->loop, &request->task);
        } else if (i == count) {
            chains[count++] = (struct chain){request->loop, &request->task, &request->task};
        } else {
            chains[i].last->next = &request->task;
            chains[i].last = &request->task;
        }
    }
    for (size_t i = 0; i < count; i++) {
        fgw_loop_post_chain(chains[i].loop, chains[i].first, chains[i].last);
    }
}

static void answer_all_with(struct queue *queue, enum fgw_err result)
{
    for (struct fgw_request *request = queue->first; request != NULL; request = request->next) {
        request->result = result;
    }
    answer_all(queue);
}

static void answer(struct fgw_request *request, enum fgw_err result)
{
    request->result = result;
    request->task.run = on_done;
    fgw_loop_post(request->loop, &request->task);
}

void fgw_committer_push(struct fgw_committer *committer, struct fgw_request *request)
{
    struct fgw_request *head = atomic_load(&committer->inbox);
    do {
        request->next = head;
    } while (!atomic_compare_exchange_weak(&committer->inbox, &head, request));
    if (head == NULL && atomic_load(&committer->sleeping)) {
        /* it has either not looked at the inbox yet or waits; signals come after the unlocking, as
         * the woken thread would only wait for the mutex */
        (void)pthread_mutex_lock(&committer->sleep.mutex);
        (void)pthread_mutex_unlock(&committer->sleep.mutex);
        (void)pthread_cond_signal(&committer->sleep.wakeup);
    }
}

static void take_inbox(struct fgw_committer *committer)
{
    struct fgw_request *newest = atomic_exchange(&committer->inbox, NULL);
    struct fgw_request *oldest = NULL;
    while (newest != NULL) {
        struct fgw_request *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct fgw_request *next = oldest->next;
        enqueue(&committer->queue, oldest);
        oldest = next;
    }
}

/* False when it is to stop. */
static bool wait_for_requests(struct fgw_committer *committer)
{
    (void)pthread_mutex_lock(&committer->sleep.mutex);
    atomic_store(&committer->sleeping, true);
    while (atomic_load(&committer->inbox) == NULL && !committer->sleep.stopping) {
        (void)pthread_cond_wait(&committer->sleep.wakeup, &committer->sleep.mutex);
    }
    atomic_store(&committer->sleeping, false);
    bool go_on = atomic_load(&committer->inbox) != NULL || !committer->sleep.stopping;
    (void)pthread_mutex_unlock(&committer->sleep.mutex);
    return go_on;
}

/* -- batches ------------------------------------------------------------------------------------ */

static void batch_reset(struct batch *batch)
{
    fgw_arena_reset(&batch->overlay.arena);
    fgw_rowmap_init(&batch->overlay.names, &batch->overlay.arena);
    fgw_rowmap_init(&batch->overlay.index, &batch->overlay.arena);
    batch->overlay.drops_blocks = false;
    fgw_buf_clear(&batch->items);
    batch->block_count = 0;
    batch->block_bytes = 0;
    batch->operations = 0;
    batch->tried = false;
    batch->next = NULL;
}

/* Forgets what is applied, oldest first. */
static void reap(struct fgw_committer *committer)
{
    size_t gone = 0;
    while (gone < committer->in_flight_count &&
           atomic_load(&committer->in_flight[gone]->state) == BATCH_APPLIED) {
        atomic_store(&committer->in_flight[gone]->state, BATCH_FREE);
        gone++;
    }
    committer->in_flight_count -= gone;
    memmove(committer->in_flight, committer->in_flight + gone,
            committer->in_flight_count * sizeof committer->in_flight[0]);
}

/* Waits until at most `limit` batches are synced and not applied; false when that may take long. */
static bool wait_applied(struct fgw_committer *committer, unsigned limit)
{
    (void)pthread_mutex_lock(&committer->handover.mutex);
    while (committer->handover.pending > limit && !committer->handover.stuck) {
        (void)pthread_cond_wait(&committer->handover.done, &committer->handover.mutex);
    }
    bool done = committer->handover.pending <= limit;
    (void)pthread_mutex_unlock(&committer->handover.mutex);
    reap(committer);
    return done;
}

static struct batch *begin_batch(struct fgw_committer *committer)
{
    struct batch *batch = committer->batches;
    while (atomic_load(&batch->state) != BATCH_FREE) {
        batch++;
    }
    atomic_store(&batch->state, BATCH_BUILDING);
    batch_reset(batch);
    struct fgw_storage_txn *txn = &committer->txn;
    fgw_txn_begin_batch(txn);
    txn->overlays[0] = &batch->overlay;
    txn->overlay_count = 1;
    for (size_t i = committer->in_flight_count; i > 0; i--) {
        txn->overlays[txn->overlay_count++] = &committer->in_flight[i - 1]->overlay;
    }
    committer->log.running_ms = fgw_storage_running_ms(committer->storage);
    fgw_item_put_u64(&batch->items, FGW_ITEM_RUNNING_MS, committer->log.running_ms);
    fgw_item_put_u64(&batch->items, FGW_ITEM_WALL_MS, (uint64_t)fgw_clock_wall_ms());
    return batch;
}

static void add_block(struct batch *batch, const struct fgw_storage_block *block)
{
    if (batch->block_count + 3 > batch->block_capacity) {
        batch->block_capacity = 2 * batch->block_capacity + 16;
        batch->blocks =
            fgw_xrealloc(batch->blocks, (size_t)batch->block_capacity * sizeof *batch->blocks);
    }
    uint8_t *head = fgw_arena_alloc(&batch->overlay.arena, FGW_CAR_SECTION_HEAD_MAX);
    size_t head_size = fgw_car_section_head_encode(&block->cid, block->bytes.len, head);
    batch->blocks[batch->block_count++] = (struct iovec){head, head_size};
    if (block->bytes.len > 0) {
        batch->blocks[batch->block_count++] =
            (struct iovec){(void *)(uintptr_t)block->bytes.ptr, block->bytes.len};
    }
    batch->block_bytes += head_size + block->bytes.len;
}

static void accept(struct fgw_committer *committer, struct batch *batch,
                   struct fgw_request *request)
{
    struct fgw_storage_txn *txn = &committer->txn;
    const struct fgw_storage_op *op = request->op;
    for (size_t i = 0; i < op->hold_count; i++) {
        if (op->holds[i].block != NULL) {
            add_block(batch, op->holds[i].block);
        }
    }
    FGW_CHECK(fgw_overlay_note(&batch->overlay, fgw_buf_bytes(&txn->items)) == FGW_OK);
    (void)fgw_buf_append(&batch->items, fgw_buf_bytes(&txn->items));
    batch->operations++;
    request->result = FGW_OK;
    enqueue(&batch->accepted, request);
}

/* Evaluates one request: into the batch, aside, or answered. */
static void evaluate(struct fgw_committer *committer, struct batch *batch,
                     struct fgw_request *request)
{
    struct fgw_storage_txn *txn = &committer->txn;
    bool defer = false;
    txn->request = request;
    txn->log_group = committer->log.group;
    txn->log_offset = committer->log.end + batch->block_bytes;
    enum fgw_err err = fgw_txn_run(txn, &defer);
    if (err == FGW_OK && txn->items.len > OPERATION_ITEMS_MAX) {
        err = FGW_ERR_TOO_LARGE;
    }
    if (err == FGW_OK) {
        accept(committer, batch, request);
    } else if (defer) {
        enqueue(&committer->deferred, request);
    } else if (err != FGW_ERR_AGAIN && txn->on_unsynced) {
        request->result = err;
        enqueue(&batch->refused, request);
    } else {
        answer(request, err);
    }
}

static void fill_batch(struct fgw_committer *committer, struct batch *batch)
{
    while (committer->queue.first != NULL && batch->operations < BATCH_OPERATIONS_MAX &&
           batch->block_bytes + batch->items.len < BATCH_BYTES_MAX) {
        evaluate(committer, batch, dequeue(&committer->queue));
    }
}

/* -- applying ----------------------------------------------------------------------------------- */

/* The index is synced by care every second, and earlier when much was written. */
static void note_index_bytes(struct fgw_committer *committer)
{
    struct fgw_storage *storage = committer->storage;
    uint64_t bytes = committer->apply->written_bytes;
    uint64_t before = atomic_fetch_add(&storage->unsynced_index_bytes, bytes);
    if (before < INDEX_SYNC_BYTES && before + bytes >= INDEX_SYNC_BYTES) {
        fgw_care_kick(storage->care, FGW_CARE_SYNC);
    }
}

/* Opening RocksDB again writes what its log holds into tables: not before there is room for it. */
static bool room_to_reopen(struct fgw_committer *committer)
{
    struct fgw_storage *storage = committer->storage;
    struct fgw_kv_stats stats;
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    fgw_kv_stats(storage->kv, &stats);
    int meta = openat(storage->dir.root, "meta", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum fgw_err err = meta < 0 ? FGW_ERR_IO : fgw_fs_space(meta, &free_bytes, &total_bytes);
    if (meta >= 0) {
        (void)close(meta);
    }
    return err == FGW_OK && free_bytes >= 2 * stats.memtable_bytes + REOPEN_BYTES;
}

/* What operations are answered while the index does not take writes. */
static enum fgw_err answer_of_failure(struct fgw_committer *committer, enum fgw_err err)
{
    if (err == FGW_ERR_CORRUPT || err == FGW_ERR_NEWER_VERSION) {
        return FGW_ERR_READ_ONLY; /* opening it again would not help */
    }
    return err == FGW_ERR_NOSPACE || !room_to_reopen(committer) ? FGW_ERR_NOSPACE
                                                                : FGW_ERR_UNAVAILABLE;
}

/* False: the index does not take writes. */
static bool apply_batch(struct fgw_committer *committer, struct batch *batch)
{
    struct fgw_error error = {0};
    enum fgw_err err = fgw_apply_batch(committer->apply, &batch->input, &error);
    if (err == FGW_OK) {
        atomic_store(&committer->stats.applied_batch, batch->input.batch);
        note_index_bytes(committer);
        answer_all(&batch->accepted);
        return true;
    }
    fgw_log_error("storage", "batch %llu is durable but cannot be applied: %s",
                  (unsigned long long)batch->input.batch, fgw_error_message(&error));
    atomic_store(&committer->failed, (int)answer_of_failure(committer, err));
    answer_all_with(&batch->accepted, FGW_ERR_UNKNOWN_OUTCOME);
    return false;
}

static bool wait_before_retry(struct fgw_committer *committer)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += RETRY_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)pthread_mutex_lock(&committer->handover.mutex);
    while (!committer->handover.stopping &&
           pthread_cond_timedwait(&committer->handover.work, &committer->handover.mutex, &until) ==
               0) {
    }
    bool stopping = committer->handover.stopping;
    (void)pthread_mutex_unlock(&committer->handover.mutex);
    return !stopping;
}

/* Stuck: nobody is kept waiting for what is behind. */
static void set_stuck(struct fgw_committer *committer, bool stuck)
{
    (void)pthread_mutex_lock(&committer->handover.mutex);
    committer->handover.stuck = stuck;
    for (struct batch *batch = committer->handover.first; stuck && batch != NULL;
         batch = batch->next) {
        answer_all_with(&batch->accepted, FGW_ERR_UNKNOWN_OUTCOME);
    }
    (void)pthread_cond_signal(&committer->handover.done);
    (void)pthread_mutex_unlock(&committer->handover.mutex);
}

/* Opens the index again. FGW_ERR_AGAIN: later. It must stand at the batch before or at this one: if
 * it lost more it must not be read, and the next start replays the log. */
static enum fgw_err reopen_index(struct fgw_committer *committer, struct batch *batch)
{
    struct fgw_error error = {0};
    struct fgw_kv *kv = committer->storage->kv;
    if (!room_to_reopen(committer) || fgw_kv_reopen(kv, &error) != FGW_OK) {
        return FGW_ERR_AGAIN;
    }
    enum fgw_err err = fgw_apply_reload(committer->apply);
    if (err != FGW_OK && err != FGW_ERR_CORRUPT) {
        return FGW_ERR_AGAIN;
    }
    uint64_t stands_at = committer->apply->applied.batch;
    if (err == FGW_OK && stands_at == batch->input.batch) {
        return FGW_OK;
    }
    if (err != FGW_OK || stands_at != batch->input.batch - 1) {
        fgw_kv_shut(kv);
        fgw_log_error("storage",
                      "the index lost batches (it stands at %llu): restart to replay "
                      "them from the log",
                      (unsigned long long)stands_at);
        return FGW_ERR_CORRUPT;
    }
    return fgw_apply_batch(committer->apply, &batch->input, &error) == FGW_OK ? FGW_OK
                                                                              : FGW_ERR_AGAIN;
}

static void unstick(struct fgw_committer *committer, const struct batch *batch)
{
    atomic_store(&committer->stats.applied_batch, batch->input.batch);
    atomic_store(&committer->failed, FGW_OK);
    set_stuck(committer, false);
    fgw_log_warn("storage", "the index takes writes again");
}

/* The applier's alone. False: stopped; the next start replays what is not applied. */
static bool recover_index(struct fgw_committer *committer, struct batch *batch)
{
    bool hopeless = atomic_load(&committer->failed) == FGW_ERR_READ_ONLY;
    set_stuck(committer, true);
    while (wait_before_retry(committer)) {
        enum fgw_err err = hopeless ? FGW_ERR_CORRUPT : reopen_index(committer, batch);
        if (err == FGW_OK) {
            unstick(committer, batch);
            return true;
        }
        if (err == FGW_ERR_CORRUPT) {
            hopeless = true;
            atomic_store(&committer->failed, FGW_ERR_READ_ONLY);
        }
    }
    return false;
}

static void finish_applied(struct fgw_committer *committer, struct batch *batch)
{
    (void)pthread_mutex_lock(&committer->handover.mutex);
    atomic_store(&batch->state, BATCH_APPLIED);
    committer->handover.pending--;
    (void)pthread_mutex_unlock(&committer->handover.mutex);
    (void)pthread_cond_signal(&committer->handover.done);
}

static struct batch *next_handed_over(struct fgw_committer *committer)
{
    (void)pthread_mutex_lock(&committer->handover.mutex);
    while (committer->handover.first == NULL && !committer->handover.stopping) {
        (void)pthread_cond_wait(&committer->handover.work, &committer->handover.mutex);
    }
    struct batch *batch = committer->handover.first;
    if (batch != NULL) {
        committer->handover.first = batch->next;
        committer->handover.last = batch->next == NULL ? NULL : committer->handover.last;
    }
    (void)pthread_mutex_unlock(&committer->handover.mutex);
    return batch;
}

/* What was handed over and will not be applied any more. */
static void answer_rest(struct fgw_committer *committer)
{
    struct batch *batch;
    while ((batch = next_handed_over(committer)) != NULL) {
        answer_all_with(&batch->accepted, FGW_ERR_UNKNOWN_OUTCOME);
    }
}

static void *applier_main(void *arg)
{
    struct fgw_committer *committer = arg;
    struct batch *batch;
    (void)pthread_setname_np(pthread_self(), "applier");
    while ((batch = next_handed_over(committer)) != NULL) {
        if (!batch->tried && apply_batch(committer, batch)) {
            finish_applied(committer, batch);
        } else if (recover_index(committer, batch)) {
            finish_applied(committer, batch);
        } else {
            answer_rest(committer);
            break;
        }
    }
    return NULL;
}

/* Nobody waits and the applier is idle: two thread switches are saved by applying here. */
static bool may_apply_inline(struct fgw_committer *committer)
{
    return committer->queue.first == NULL && atomic_load(&committer->inbox) == NULL &&
           committer->in_flight_count == 0;
}

static void hand_over(struct fgw_committer *committer, struct batch *batch)
{
    batch->tried = may_apply_inline(committer);
    if (batch->tried && apply_batch(committer, batch)) {
        atomic_store(&batch->state, BATCH_FREE);
        return;
    }
    committer->in_flight[committer->in_flight_count++] = batch;
    (void)pthread_mutex_lock(&committer->handover.mutex);
    if (committer->handover.last == NULL) {
        committer->handover.first = batch;
    } else {
        committer->handover.last->next = batch;
    }
    committer->handover.last = batch;
    committer->handover.pending++;
    if (committer->handover.stuck) {
        answer_all_with(&batch->accepted, FGW_ERR_UNKNOWN_OUTCOME);
    }
    (void)pthread_mutex_unlock(&committer->handover.mutex);
    (void)pthread_cond_signal(&committer->handover.work);
}

/* -- the committer's turn ----------------------------------------------------------------------- */

static void write_batch(struct fgw_committer *committer, struct batch *batch)
{
    struct iovec none[1];
    struct fgw_log *log = &committer->log;
    struct fgw_log_append append = {.blocks = batch->block_count > 0 ? batch->blocks : none,
                                    .block_count = batch->block_count,
                                    .block_bytes = batch->block_bytes,
                                    .items = fgw_buf_bytes(&batch->items)};
    atomic_fetch_add(&committer->storage->space.used_bytes, append.block_bytes + append.items.len);
    enum fgw_err err = fgw_log_append(log, &append);
    if (err != FGW_OK) {
        atomic_store(&committer->stats.read_only, log->read_only);
        prepend_all(&committer->queue, &batch->refused);
        atomic_store(&batch->state, BATCH_FREE);
        answer_all_with(&batch->accepted, err);
        return;
    }
    batch->input = (struct fgw_apply_input){.items = append.items,
                                            .batch = log->last_batch,
                                            .group = log->group,
                                            .end = log->end,
                                            .last_record = log->last_record};
    atomic_store(&committer->stats.last_batch, log->last_batch);
    atomic_store(&committer->stats.log_group, log->group);
    atomic_store(&committer->stats.log_end, log->end);
    atomic_fetch_add(&committer->stats.record_bytes, append.items.len);
    atomic_fetch_add(&committer->stats.batches, 1);
    atomic_fetch_add(&committer->stats.operations, batch->operations);
    atomic_store(&batch->state, BATCH_SYNCED);
    answer_all(&batch->refused);
    hand_over(committer, batch);
}

/* Room for a batch, and the index as deferred operations need it. */
static enum fgw_err prepare_batch(struct fgw_committer *committer)
{
    bool ready = true;
    reap(committer);
    if (committer->deferred.first != NULL) {
        ready = wait_applied(committer, 0);
        prepend_all(&committer->queue, &committer->deferred);
    } else if (committer->in_flight_count == FGW_BATCHES_IN_FLIGHT) {
        ready = wait_applied(committer, FGW_BATCHES_IN_FLIGHT - 1);
    }
    enum fgw_err failed = (enum fgw_err)atomic_load(&committer->failed);
    if (failed != FGW_OK || !ready) {
        return failed == FGW_OK ? FGW_ERR_UNAVAILABLE : failed;
    }
    enum fgw_err err = fgw_log_prepare(&committer->log);
    atomic_store(&committer->stats.read_only, committer->log.read_only);
    return err;
}

static void commit_queue(struct fgw_committer *committer)
{
    enum fgw_err err = prepare_batch(committer);
    if (err != FGW_OK) {
        answer_all_with(&committer->queue, err);
        return;
    }
    struct batch *batch = begin_batch(committer);
    fill_batch(committer, batch);
    if (batch->operations == 0) {
        atomic_store(&batch->state, BATCH_FREE);
        answer_all(&batch->refused);
        return;
    }
    write_batch(committer, batch);
}

static void *committer_main(void *arg)
{
    struct fgw_committer *committer = arg;
    (void)pthread_setname_np(pthread_self(), "committer");
    for (;;) {
        take_inbox(committer);
        if (committer->queue.first != NULL || committer->deferred.first != NULL) {
            commit_queue(committer);
        } else if (!wait_for_requests(committer)) {
            return NULL;
        }
        fgw_storage_check_space(committer->storage, false);
    }
}

/* -- life --------------------------------------------------------------------------------------- */

struct fgw_committer *fgw_committer_start(const struct fgw_committer_options *options)
{
    struct fgw_committer *committer = fgw_xcalloc(1, sizeof *committer);
    committer->storage = options->storage;
    committer->apply = options->apply;
    fgw_log_init(&committer->log, &options->storage->dir, &options->sealer,
                 &options->storage->last_group);
    committer->log.group_size = options->storage->options.group_size_bytes;
    committer->log.sync_off = options->storage->options.sync_off;
    fgw_log_adopt(&committer->log, &options->position);
    committer->stats.last_batch = options->position.last_batch;
    committer->stats.applied_batch = options->position.last_batch;
    committer->stats.log_group = options->position.group;
    committer->stats.log_end = options->position.end;
    fgw_txn_init(&committer->txn, options->storage);
    committer->batches = fgw_xcalloc(FGW_BATCHES_IN_FLIGHT + 1, sizeof *committer->batches);
    for (size_t i = 0; i <= FGW_BATCHES_IN_FLIGHT; i++) {
        fgw_arena_init(&committer->batches[i].overlay.arena, 64 * 1024);
        fgw_buf_init(&committer->batches[i].items, 0);
    }
    (void)pthread_mutex_init(&committer->sleep.mutex, NULL);
    (void)pthread_cond_init(&committer->sleep.wakeup, NULL);
    (void)pthread_mutex_init(&committer->handover.mutex, NULL);
    (void)pthread_cond_init(&committer->handover.work, NULL);
    (void)pthread_cond_init(&committer->handover.done, NULL);
    FGW_CHECK(pthread_create(&committer->applier, NULL, applier_main, committer) == 0);
    FGW_CHECK(pthread_create(&committer->thread, NULL, committer_main, committer) == 0);
    return committer;
}

static void stop_threads(struct fgw_committer *committer)
{
    (void)pthread_mutex_lock(&committer->sleep.mutex);
    committer->sleep.stopping = true;
    (void)pthread_cond_signal(&committer->sleep.wakeup);
    (void)pthread_mutex_unlock(&committer->sleep.mutex);
    (void)pthread_join(committer->thread, NULL);
    (void)pthread_mutex_lock(&committer->handover.mutex);
    committer->handover.stopping = true;
    (void)pthread_cond_signal(&committer->handover.work);
    (void)pthread_mutex_unlock(&committer->handover.mutex);
    (void)pthread_join(committer->applier, NULL);
}

void fgw_committer_stop(struct fgw_committer *committer)
{
    if (committer == NULL) {
        return;
    }
    stop_threads(committer);
    for (size_t i = 0; i <= FGW_BATCHES_IN_FLIGHT; i++) {
        fgw_arena_deinit(&committer->batches[i].overlay.arena);
        fgw_buf_deinit(&committer->batches[i].items);
        fgw_xfree(committer->batches[i].blocks);
    }
    fgw_xfree(committer->batches);
    fgw_txn_deinit(&committer->txn);
    fgw_log_deinit(&committer->log);
    fgw_apply_deinit(committer->apply);
    fgw_xfree(committer->apply);
    (void)pthread_mutex_destroy(&committer->sleep.mutex);
    (void)pthread_cond_destroy(&committer->sleep.wakeup);
    (void)pthread_mutex_destroy(&committer->handover.mutex);
    (void)pthread_cond_destroy(&committer->handover.work);
    (void)pthread_cond_destroy(&committer->handover.done);
    fgw_xfree(committer);
}

void fgw_committer_seal(struct fgw_committer *committer, uint64_t group)
{
    atomic_store(&committer->log.seal_wanted, group);
}

void fgw_committer_stats(struct fgw_committer *committer, struct fgw_committer_stats *out_stats)
{
    *out_stats =
        (struct fgw_committer_stats){.batches = atomic_load(&committer->stats.batches),
                                     .operations = atomic_load(&committer->stats.operations),
                                     .syncs = atomic_load(&committer->log.syncs.count),
                                     .sync_ns_total = atomic_load(&committer->log.syncs.ns_total),
                                     .applied_batch = atomic_load(&committer->stats.applied_batch),
                                     .last_batch = atomic_load(&committer->stats.last_batch),
                                     .log_group = atomic_load(&committer->stats.log_group),
                                     .log_end = atomic_load(&committer->stats.log_end),
                                     .record_bytes = atomic_load(&committer->stats.record_bytes),
                                     .read_only = atomic_load(&committer->stats.read_only) ||
                                                  atomic_load(&committer->failed) != FGW_OK};
}
