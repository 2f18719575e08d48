/* replicated_hedge.c: the first bytes of a window from one member, or, when they take longer than 95 of
 * 100 did lately, from whichever of two members is first (design/cluster.md section 5). Each member is
 * asked by a fiber of its own, which outlives the reader when nobody wants its answer any more. At most
 * one read in twenty asks a second member. */
#include "base/clock.h"
#include "blobs/replicated_internal.h"

enum { FIRST_P95_US = 50000, LEAST_MS = 2, MOST_MS = 1000 };
static const double TOKENS_PER_READ = 0.05;
static const double TOKENS_MAX = 10;

struct attempt {
    struct fgw_replicated_worker *worker;
    struct fgw_member member;
    struct fgw_placement_set set; /* of this member alone: the reader may be gone before us */
    unsigned index;               /* in the reader's set */
    struct fgw_extent extent;
    uint64_t offset, len;
    struct fgw_wait *wake; /* NULL: nobody waits */
    bool abandoned;
    bool done;
    /* the answer */
    struct fgw_member_reader stream;
    uint64_t chunk_offset;
    struct fgw_bytes chunk;
    enum fgw_err err;
    struct fgw_error error;
};

static void free_attempt(struct attempt *attempt)
{
    struct fgw_replicated_worker *worker = attempt->worker;
    fgw_member_reader_close(&attempt->stream);
    fgw_xfree(attempt);
    worker->attempts--;
    fgw_replicated_fiber_done(worker);
}

static void run(void *arg)
{
    struct attempt *attempt = arg;
    attempt->err = fgw_member_reader_open(&attempt->member, &attempt->extent, attempt->offset,
                                          attempt->len, &attempt->stream, &attempt->error);
    if (attempt->err == FGW_OK) {
        attempt->err = fgw_remote_reader_next(attempt->stream.remote, &attempt->chunk_offset,
                                              &attempt->chunk, &attempt->error);
    }
    attempt->done = true;
    if (attempt->abandoned) {
        if (attempt->err != FGW_OK) { /* a store that stalls is known as one */
            fgw_member_report(&attempt->member, attempt->err, &attempt->extent.root);
        }
        free_attempt(attempt);
    } else if (attempt->wake != NULL && attempt->wake->missing > 0) {
        fgw_wait_signal(attempt->wake);
    }
}

static struct attempt *start(struct fgw_replicated *replicated, const struct fgw_first *first,
                             unsigned index)
{
    struct attempt *attempt = fgw_xmalloc(sizeof *attempt);
    attempt->worker = &replicated->per_worker[fgw_worker_index()];
    attempt->set.id = first->set->id;
    attempt->set.epoch = first->set->epoch;
    attempt->set.count = 1;
    attempt->set.members[0] = first->set->members[index];
    attempt->member = (struct fgw_member){replicated, &attempt->set, 0};
    attempt->index = index;
    attempt->extent = *first->extent;
    attempt->offset = first->offset;
    attempt->len = first->len;
    attempt->wake = NULL;
    attempt->abandoned = attempt->done = false;
    attempt->stream = (struct fgw_member_reader){NULL, NULL};
    attempt->chunk = fgw_bytes(NULL, 0);
    fgw_error_init(&attempt->error);
    attempt->worker->attempts++;
    fgw_fiber_spawn(fgw_loop_current(), run, attempt);
    return attempt;
}

static void give_up(struct attempt *attempt)
{
    if (attempt == NULL) {
        return;
    }
    attempt->abandoned = true;
    attempt->wake = NULL;
    if (attempt->done) {
        free_attempt(attempt);
    }
}

/* -- waiting ------------------------------------------------------------------------------------- */

/* Until one of them is done, or the time has come. */
static void wait_any(struct attempt *one, struct attempt *other, uint64_t deadline_ms)
{
    struct fgw_wait wake;
    if (one->done || (other != NULL && other->done)) {
        return;
    }
    fgw_wait_init(&wake, 1);
    one->wake = &wake;
    if (other != NULL) {
        other->wake = &wake;
    }
    if (deadline_ms == UINT64_MAX) {
        fgw_wait_for(&wake);
    } else {
        (void)!fgw_wait_until(&wake, deadline_ms);
    }
    one->wake = NULL;
    if (other != NULL) {
        other->wake = NULL;
    }
}

/* A step towards the 95th percentile: up by 0.95 of a step when it took longer, down by 0.05. */
static void learn(struct fgw_replicated_worker *worker, uint64_t took_us)
{
    double step = worker->p95_us / 20;
    worker->p95_us += (double)took_us > worker->p95_us ? step * 0.95 : -step * 0.05;
    worker->p95_us = worker->p95_us < 200 ? 200 : worker->p95_us;
}

static uint64_t patience_ms(struct fgw_replicated_worker *worker)
{
    if (worker->p95_us <= 0) {
        worker->p95_us = FIRST_P95_US;
        worker->hedge_tokens = TOKENS_MAX / 2;
    }
    uint64_t ms = (uint64_t)(worker->p95_us / 1000) + 1;
    return ms < LEAST_MS ? LEAST_MS : ms > MOST_MS ? MOST_MS : ms;
}

static bool may_hedge(struct fgw_replicated_worker *worker, const struct fgw_first *first)
{
    return first->second != UINT32_MAX && worker->hedge_tokens >= 1;
}

static void take(struct attempt *winner, struct fgw_first *first)
{
    first->index = winner->index;
    first->stream = winner->stream;
    first->chunk_offset = winner->chunk_offset;
    first->chunk = winner->chunk;
    winner->stream = (struct fgw_member_reader){NULL, NULL};
}

/* The one that is done and good, else one that is done and bad, else NULL. */
static struct attempt *first_done(struct attempt *one, struct attempt *other)
{
    bool one_done = one != NULL && one->done;
    bool other_done = other != NULL && other->done;
    if (one_done && (one->err == FGW_OK || !other_done)) {
        return one;
    }
    return other_done ? other : NULL;
}

static enum fgw_err settle(struct fgw_first *first, struct attempt *one, struct attempt *other,
                           struct fgw_error *error)
{
    enum fgw_err err = FGW_ERR_UNAVAILABLE;
    while (one != NULL || other != NULL) {
        if (one == NULL) {
            one = other;
            other = NULL;
        }
        wait_any(one, other, UINT64_MAX);
        struct attempt *done = first_done(one, other);
        struct attempt *rest = done == one ? other : one;
        err = done->err;
        if (err == FGW_OK) {
            take(done, first);
            give_up(done);
            give_up(rest);
            return FGW_OK;
        }
        *error = done->error;
        first->index = done->index;
        if (rest != NULL) {
            first->failed(first->context, done->index, err, &done->error);
        }
        give_up(done);
        one = rest;
        other = NULL;
    }
    return err;
}

enum fgw_err fgw_replicated_first(struct fgw_replicated *replicated, struct fgw_first *first,
                                  struct fgw_error *error)
{
    struct fgw_replicated_worker *worker = &replicated->per_worker[fgw_worker_index()];
    uint64_t began_us = fgw_clock_boot_ns() / 1000;
    uint64_t deadline_ms = fgw_loop_now_ms(fgw_loop_current()) + patience_ms(worker);
    struct attempt *one = start(replicated, first, first->index);
    struct attempt *other = NULL;
    worker->hedge_tokens += TOKENS_PER_READ;
    worker->hedge_tokens = worker->hedge_tokens > TOKENS_MAX ? TOKENS_MAX : worker->hedge_tokens;
    wait_any(one, NULL, may_hedge(worker, first) ? deadline_ms : UINT64_MAX);
    if (!one->done && may_hedge(worker, first)) {
        worker->hedge_tokens -= 1;
        FGW_REPLICATED_COUNT(replicated, reads_hedged);
        other = start(replicated, first, first->second);
    }
    enum fgw_err err = settle(first, one, other, error);
    learn(worker, fgw_clock_boot_ns() / 1000 - began_us);
    return err;
}
