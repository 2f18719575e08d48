/* quota.c: see quota.h. */
#include "s3/quota.h"

#include <pthread.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "event/fiber.h"
#include "s3/engine_internal.h"
#include "s3/op.h"
#include "s3/usage.h"

enum {
    CHAINS = 256,
    RENEW_MS = 10000,      /* a count that admits is renewed when older */
    RENEW_TIMES = 20,      /* or than so many times its duration */
    DOUBT_MS = 1000,       /* a count that refuses, when nothing happened here */
    DOUBT_CHANGED_MS = 50, /* and when something did */
    DOUBT_TIMES = 4,
    WAIT_MS = 5000,
    POLL_MS = 5
};

struct room {
    uint64_t bytes;
    uint64_t objects;
};

/* Of one bucket; under the mutex. Stays until the process ends. */
struct entry {
    struct entry *next;
    struct fgw_s3_quotas *quotas;
    struct fgw_id bucket_id;
    struct room counted;       /* by the last count */
    struct room taken;         /* since that began, and what was under way then */
    struct room taken_running; /* same, of the count that runs */
    struct room under_way;
    uint64_t began_ms; /* of the last count that ended, whatever came of it */
    uint64_t duration_ms;
    uint64_t running_since_ms;
    bool known; /* a count succeeded */
    bool ended; /* a count ended */
    bool running;
    bool changed; /* something was written or deleted here since the last count began */
    bool changed_running;
};

struct fgw_s3_quotas {
    struct fgw_meta *meta;
    pthread_mutex_t mutex;
    pthread_cond_t idle;
    struct {
        struct entry *chains[CHAINS];
        unsigned running;
        bool stopping;
    } under_mutex;
};

struct count {
    struct entry *entry;
    struct fgw_arena arena;
    struct fgw_bucket bucket;
};

struct fgw_s3_quotas *fgw_s3_quotas_new(struct fgw_meta *meta)
{
    struct fgw_s3_quotas *quotas = fgw_xcalloc(1, sizeof *quotas);
    quotas->meta = meta;
    FGW_CHECK(pthread_mutex_init(&quotas->mutex, NULL) == 0);
    FGW_CHECK(pthread_cond_init(&quotas->idle, NULL) == 0);
    return quotas;
}

void fgw_s3_quotas_free(struct fgw_s3_quotas *quotas)
{
    if (quotas == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&quotas->mutex);
    quotas->under_mutex.stopping = true;
    while (quotas->under_mutex.running > 0) {
        (void)pthread_cond_wait(&quotas->idle, &quotas->mutex);
    }
    (void)pthread_mutex_unlock(&quotas->mutex);
    for (size_t i = 0; i < CHAINS; i++) {
        while (quotas->under_mutex.chains[i] != NULL) {
            struct entry *entry = quotas->under_mutex.chains[i];
            quotas->under_mutex.chains[i] = entry->next;
            fgw_xfree(entry);
        }
    }
    (void)pthread_cond_destroy(&quotas->idle);
    (void)pthread_mutex_destroy(&quotas->mutex);
    fgw_xfree(quotas);
}

static struct entry *find(struct fgw_s3_quotas *quotas, const struct fgw_id *bucket_id)
{
    /* the last byte is random in every kind of id */
    struct entry **chain = &quotas->under_mutex.chains[bucket_id->bytes[FGW_META_ID_SIZE - 1]];
    for (struct entry *entry = *chain; entry != NULL; entry = entry->next) {
        if (fgw_id_eq(&entry->bucket_id, bucket_id)) {
            return entry;
        }
    }
    struct entry *entry = fgw_xcalloc(1, sizeof *entry);
    entry->quotas = quotas;
    entry->bucket_id = *bucket_id;
    entry->next = *chain;
    *chain = entry;
    return entry;
}

static void add(struct room *room, uint64_t bytes, uint64_t objects)
{
    room->bytes += bytes;
    room->objects += objects;
}

static void subtract(struct room *room, uint64_t bytes, uint64_t objects)
{
    room->bytes -= bytes < room->bytes ? bytes : room->bytes;
    room->objects -= objects < room->objects ? objects : room->objects;
}

/* -- counting --------------------------------------------------------------------------------- */

static bool is_stopping(void *context)
{
    struct fgw_s3_quotas *quotas = context;
    (void)pthread_mutex_lock(&quotas->mutex);
    bool stopping = quotas->under_mutex.stopping;
    (void)pthread_mutex_unlock(&quotas->mutex);
    return stopping;
}

static void note_result(struct entry *entry, const struct fgw_s3_usage *usage)
{
    entry->duration_ms = fgw_clock_boot_ms() - entry->running_since_ms;
    entry->began_ms = entry->running_since_ms;
    entry->ended = true;
    entry->running = false;
    if (usage != NULL) {
        entry->known = true;
        entry->counted = (struct room){usage->bytes + usage->upload_bytes, usage->objects};
        entry->taken = entry->taken_running;
        entry->changed = entry->changed_running;
    }
}

static void run_count(void *arg)
{
    struct count *count = arg;
    struct fgw_s3_quotas *quotas = count->entry->quotas;
    struct fgw_s3_usage usage;
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err =
        fgw_s3_usage_count(quotas->meta, &count->bucket, is_stopping, quotas, &usage, &error);
    if (err != FGW_OK && err != FGW_ERR_CANCELLED) {
        fgw_log_warn("quota", "bucket %.*s could not be counted: %s", FGW_FMT(count->bucket.name),
                     fgw_error_message(&error));
    }
    (void)pthread_mutex_lock(&quotas->mutex);
    note_result(count->entry, err == FGW_OK ? &usage : NULL);
    if (--quotas->under_mutex.running == 0) {
        (void)pthread_cond_broadcast(&quotas->idle);
    }
    (void)pthread_mutex_unlock(&quotas->mutex);
    fgw_arena_deinit(&count->arena);
    fgw_xfree(count);
}

/* Under the mutex. What the caller is to start behind it, or NULL: one runs, or the process ends. */
static struct count *begin_count(struct entry *entry, const struct fgw_bucket *bucket)
{
    if (entry->running || entry->quotas->under_mutex.stopping) {
        return NULL;
    }
    entry->running = true;
    entry->running_since_ms = fgw_clock_boot_ms();
    entry->taken_running = entry->under_way;
    entry->changed_running = false;
    entry->quotas->under_mutex.running++;
    struct count *count = fgw_xcalloc(1, sizeof *count);
    count->entry = entry;
    fgw_arena_init(&count->arena, 0);
    count->bucket = (struct fgw_bucket){.id = bucket->id,
                                        .name = fgw_arena_copy(&count->arena, bucket->name),
                                        .versioning = bucket->versioning,
                                        .shards = bucket->shards,
                                        .created_ms = bucket->created_ms,
                                        .rev = bucket->rev};
    return count;
}

/* -- judging ---------------------------------------------------------------------------------- */

enum verdict { ADMIT, REFUSE, WAIT };

static bool fits(const struct entry *entry, const struct fgw_bucket *bucket, uint64_t bytes,
                 uint64_t objects)
{
    uint64_t used_bytes = entry->counted.bytes + entry->taken.bytes;
    uint64_t used_objects = entry->counted.objects + entry->taken.objects;
    bool too_large = bucket->quota_bytes > 0 && bytes > 0 &&
                     (used_bytes > bucket->quota_bytes || bytes > bucket->quota_bytes - used_bytes);
    bool too_many =
        bucket->quota_objects > 0 && objects > 0 && used_objects + objects > bucket->quota_objects;
    return !too_large && !too_many;
}

static bool older(const struct entry *entry, uint64_t now_ms, uint64_t limit_ms, unsigned times)
{
    uint64_t limit = entry->duration_ms * times;
    return now_ms - entry->began_ms > (limit > limit_ms ? limit : limit_ms);
}

/* Under the mutex: what does not fit, by what is known. A count that began after the write came is not
 * doubted; one that would not end in time is not waited for. */
static enum verdict doubt(struct entry *entry, const struct fgw_bucket *bucket,
                          uint64_t deadline_ms, struct count **out_count)
{
    uint64_t limit_ms = entry->duration_ms * DOUBT_TIMES;
    uint64_t least_ms = entry->changed ? DOUBT_CHANGED_MS : DOUBT_MS;
    uint64_t due_ms = entry->began_ms + (limit_ms > least_ms ? limit_ms : least_ms);
    if (entry->began_ms + WAIT_MS >= deadline_ms || entry->duration_ms > WAIT_MS) {
        return REFUSE;
    }
    if (fgw_clock_boot_ms() >= due_ms) {
        *out_count = begin_count(entry, bucket);
        return WAIT;
    }
    return entry->running || (entry->changed && due_ms < deadline_ms) ? WAIT : REFUSE;
}

/* Under the mutex. *out_count: a count to start. */
static enum verdict judge(struct entry *entry, const struct fgw_bucket *bucket,
                          const struct room *wanted, uint64_t deadline_ms, struct count **out_count)
{
    uint64_t now_ms = fgw_clock_boot_ms();
    if (!entry->known) {
        /* one that failed is not waited for again at once */
        bool due = !entry->ended || older(entry, now_ms, RENEW_MS, RENEW_TIMES);
        *out_count = due ? begin_count(entry, bucket) : NULL;
        return entry->running && now_ms - entry->running_since_ms < WAIT_MS ? WAIT : ADMIT;
    }
    if (fits(entry, bucket, wanted->bytes, wanted->objects)) {
        if (older(entry, now_ms, RENEW_MS, RENEW_TIMES)) {
            *out_count = begin_count(entry, bucket);
        }
        return ADMIT;
    }
    return doubt(entry, bucket, deadline_ms, out_count);
}

static enum fgw_err refuse(struct fgw_s3_request *request)
{
    (void)fgw_error_set(&request->error, FGW_ERR_QUOTA_EXCEEDED, NULL);
    fgw_error_add(&request->error, "BucketName", "%.*s", FGW_FMT(request->bucket.name));
    return FGW_ERR_QUOTA_EXCEEDED;
}

static bool has_quota(const struct fgw_bucket *bucket)
{
    return bucket->quota_bytes > 0 || bucket->quota_objects > 0;
}

enum fgw_err fgw_s3_quota_take(struct fgw_s3_request *request, uint64_t bytes, uint64_t objects)
{
    const struct fgw_bucket *bucket = &request->bucket;
    struct fgw_s3_quotas *quotas = request->s3->quotas;
    if (!has_quota(bucket)) {
        return FGW_OK;
    }
    struct room wanted = {bytes, objects};
    uint64_t deadline_ms = fgw_clock_boot_ms() + WAIT_MS;
    enum verdict verdict = WAIT;
    while (verdict == WAIT) {
        struct count *count = NULL;
        (void)pthread_mutex_lock(&quotas->mutex);
        struct entry *entry = find(quotas, &bucket->id);
        verdict = judge(entry, bucket, &wanted, deadline_ms, &count);
        if (verdict == WAIT && fgw_clock_boot_ms() >= deadline_ms) {
            verdict = entry->known ? REFUSE : ADMIT;
        }
        if (verdict == ADMIT) {
            add(&entry->taken, bytes, objects);
            add(&entry->taken_running, bytes, objects);
            add(&entry->under_way, bytes, objects);
            request->quota_taken.bytes += bytes;
            request->quota_taken.objects += objects;
        }
        (void)pthread_mutex_unlock(&quotas->mutex);
        if (count != NULL) {
            fgw_fiber_spawn(fgw_loop_current(), run_count, count);
        }
        if (verdict == WAIT) {
            fgw_fiber_sleep_ms(POLL_MS);
        }
    }
    return verdict == ADMIT ? FGW_OK : refuse(request);
}

void fgw_s3_quota_settle(struct fgw_s3_request *request, enum fgw_err outcome)
{
    const struct fgw_s3_quota_taken *taken = &request->quota_taken;
    bool writes = request->op != NULL && (request->op->flags & FGW_S3_OP_WRITE) != 0;
    if (!writes || !has_quota(&request->bucket)) {
        return;
    }
    struct fgw_s3_quotas *quotas = request->s3->quotas;
    bool failed = outcome != FGW_OK && outcome != FGW_ERR_UNKNOWN_OUTCOME;
    (void)pthread_mutex_lock(&quotas->mutex);
    struct entry *entry = find(quotas, &request->bucket.id);
    subtract(&entry->under_way, taken->bytes, taken->objects);
    if (failed) {
        subtract(&entry->taken, taken->bytes, taken->objects);
        subtract(&entry->taken_running, taken->bytes, taken->objects);
    } else {
        entry->changed = entry->changed_running = true;
    }
    (void)pthread_mutex_unlock(&quotas->mutex);
}
