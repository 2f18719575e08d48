/* metrics.c: see metrics.h. */
#include "console/metrics.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "base/check.h"
#include "event/workers.h"

enum { BUCKETS = 16, CODES_MAX = 64, WRITERS_MAX = 16 };

static const uint64_t BOUNDS_US[BUCKETS] = {50,     100,     250,     500,     1000,   2500,
                                            5000,   10000,   25000,   50000,   100000, 250000,
                                            500000, 1000000, 2500000, 10000000};

/* Written by one thread, read by any: relaxed atomics. */
typedef _Atomic uint64_t counter;

static void add(counter *to, uint64_t value)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + value,
                          memory_order_relaxed);
}

static uint64_t get(const counter *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

struct operation_counters {
    counter by_class[6]; /* status / 100 */
    counter buckets[BUCKETS];
    counter duration_ns;
};

struct code_counter {
    _Atomic(const char *) code;
    counter count;
};

struct worker_counters {
    struct operation_counters *operations;
    struct code_counter codes[CODES_MAX];
    counter received_bytes;
    counter sent_bytes;
};

struct fgw_metrics {
    unsigned worker_count;
    struct worker_counters *workers;
    const char **operations; /* the last is "Unknown" */
    size_t operation_count;
    struct {
        fgw_metrics_writer *writer;
        void *context;
    } writers[WRITERS_MAX];
    size_t writer_count;
};

struct fgw_metrics *fgw_metrics_new(unsigned workers, const char *const *operations, size_t count)
{
    struct fgw_metrics *metrics = fgw_xcalloc(1, sizeof *metrics);
    metrics->worker_count = workers;
    metrics->workers = fgw_xcalloc(workers, sizeof *metrics->workers);
    metrics->operation_count = count + 1;
    metrics->operations = fgw_xcalloc(count + 1, sizeof *metrics->operations);
    if (count > 0) {
        memcpy(metrics->operations, operations, count * sizeof *operations);
    }
    metrics->operations[count] = "Unknown";
    for (unsigned i = 0; i < workers; i++) {
        metrics->workers[i].operations =
            fgw_xcalloc(count + 1, sizeof *metrics->workers[i].operations);
    }
    return metrics;
}

void fgw_metrics_free(struct fgw_metrics *metrics)
{
    if (metrics == NULL) {
        return;
    }
    for (unsigned i = 0; i < metrics->worker_count; i++) {
        fgw_xfree(metrics->workers[i].operations);
    }
    fgw_xfree(metrics->workers);
    fgw_xfree(metrics->operations);
    fgw_xfree(metrics);
}

static size_t operation_index(const struct fgw_metrics *metrics, const char *name)
{
    for (size_t i = 0; i + 1 < metrics->operation_count; i++) {
        if (metrics->operations[i] == name) {
            return i;
        }
    }
    return metrics->operation_count - 1;
}

static void add_code(struct worker_counters *mine, const char *code)
{
    for (size_t i = 0; i < CODES_MAX; i++) {
        const char *at = atomic_load_explicit(&mine->codes[i].code, memory_order_relaxed);
        if (at == NULL) {
            atomic_store_explicit(&mine->codes[i].code, code, memory_order_release);
            at = code;
        }
        if (at == code) {
            add(&mine->codes[i].count, 1);
            return;
        }
    }
}

void fgw_metrics_add(struct fgw_metrics *metrics, const struct fgw_metrics_request *request)
{
    unsigned worker = fgw_worker_index();
    if (worker >= metrics->worker_count) {
        return;
    }
    struct worker_counters *mine = &metrics->workers[worker];
    struct operation_counters *operation =
        &mine->operations[operation_index(metrics, request->operation)];
    unsigned status_class = (unsigned)request->status / 100;
    add(&operation->by_class[status_class < 6 ? status_class : 0], 1);
    add(&operation->duration_ns, request->duration_ns);
    size_t bucket = 0;
    while (bucket < BUCKETS && request->duration_ns > BOUNDS_US[bucket] * 1000) {
        bucket++;
    }
    if (bucket < BUCKETS) {
        add(&operation->buckets[bucket], 1);
    }
    add(&mine->received_bytes, request->received_bytes);
    add(&mine->sent_bytes, request->sent_bytes);
    if (request->error_code != NULL) {
        add_code(mine, request->error_code);
    }
}

void fgw_metrics_register(struct fgw_metrics *metrics, fgw_metrics_writer *writer, void *context)
{
    FGW_CHECK(metrics->writer_count < WRITERS_MAX);
    metrics->writers[metrics->writer_count].writer = writer;
    metrics->writers[metrics->writer_count++].context = context;
}

void fgw_metrics_family(struct fgw_buf *out, const char *name, const char *type, const char *help)
{
    (void)fgw_buf_appendf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void sample(struct fgw_buf *out, const char *name, const char *help, const char *type,
                   uint64_t value)
{
    fgw_metrics_family(out, name, type, help);
    (void)fgw_buf_appendf(out, "%s %" PRIu64 "\n", name, value);
}

void fgw_metrics_gauge(struct fgw_buf *out, const char *name, const char *help, uint64_t value)
{
    sample(out, name, help, "gauge", value);
}

void fgw_metrics_counter(struct fgw_buf *out, const char *name, const char *help, uint64_t value)
{
    sample(out, name, help, "counter", value);
}

static void sum_operation(const struct fgw_metrics *metrics, size_t index,
                          struct operation_counters *out_sum)
{
    memset(out_sum, 0, sizeof *out_sum);
    for (unsigned w = 0; w < metrics->worker_count; w++) {
        const struct operation_counters *from = &metrics->workers[w].operations[index];
        for (size_t i = 0; i < 6; i++) {
            add(&out_sum->by_class[i], get(&from->by_class[i]));
        }
        for (size_t i = 0; i < BUCKETS; i++) {
            add(&out_sum->buckets[i], get(&from->buckets[i]));
        }
        add(&out_sum->duration_ns, get(&from->duration_ns));
    }
}

static void render_requests(const struct fgw_metrics *metrics, struct fgw_buf *out)
{
    (void)fgw_buf_append_str(out, "# HELP fgw_s3_requests_total S3 requests answered.\n"
                                  "# TYPE fgw_s3_requests_total counter\n");
    for (size_t i = 0; i < metrics->operation_count; i++) {
        struct operation_counters sum;
        sum_operation(metrics, i, &sum);
        for (size_t c = 0; c < 6; c++) {
            if (get(&sum.by_class[c]) > 0) {
                (void)fgw_buf_appendf(out,
                                      "fgw_s3_requests_total{operation=\"%s\",class=\"%zuxx\"} "
                                      "%" PRIu64 "\n",
                                      metrics->operations[i], c, get(&sum.by_class[c]));
            }
        }
    }
}

static void render_latency(const struct fgw_metrics *metrics, struct fgw_buf *out)
{
    static const char NAME[] = "fgw_s3_request_duration_seconds";
    (void)fgw_buf_appendf(out,
                          "# HELP %s From the first byte of the head to the end of the answer.\n"
                          "# TYPE %s histogram\n",
                          NAME, NAME);
    for (size_t i = 0; i < metrics->operation_count; i++) {
        struct operation_counters sum;
        uint64_t total = 0;
        uint64_t running = 0;
        sum_operation(metrics, i, &sum);
        for (size_t c = 0; c < 6; c++) {
            total += get(&sum.by_class[c]);
        }
        if (total == 0) {
            continue;
        }
        const char *operation = metrics->operations[i];
        for (size_t b = 0; b < BUCKETS; b++) {
            running += get(&sum.buckets[b]);
            (void)fgw_buf_appendf(out, "%s_bucket{operation=\"%s\",le=\"%g\"} %" PRIu64 "\n", NAME,
                                  operation, (double)BOUNDS_US[b] / 1e6, running);
        }
        (void)fgw_buf_appendf(out, "%s_bucket{operation=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", NAME,
                              operation, total);
        (void)fgw_buf_appendf(out, "%s_sum{operation=\"%s\"} %.6f\n", NAME, operation,
                              (double)get(&sum.duration_ns) / 1e9);
        (void)fgw_buf_appendf(out, "%s_count{operation=\"%s\"} %" PRIu64 "\n", NAME, operation,
                              total);
    }
}

static void render_errors(const struct fgw_metrics *metrics, struct fgw_buf *out)
{
    (void)fgw_buf_append_str(out, "# HELP fgw_s3_errors_total S3 requests answered with an error.\n"
                                  "# TYPE fgw_s3_errors_total counter\n");
    const char *codes[CODES_MAX];
    uint64_t counts[CODES_MAX] = {0};
    size_t known = 0;
    for (unsigned w = 0; w < metrics->worker_count; w++) {
        for (size_t i = 0; i < CODES_MAX; i++) {
            const struct code_counter *from = &metrics->workers[w].codes[i];
            const char *code = atomic_load_explicit(&from->code, memory_order_acquire);
            size_t at = 0;
            while (code != NULL && at < known && strcmp(codes[at], code) != 0) {
                at++;
            }
            if (code == NULL || at == CODES_MAX) {
                break;
            }
            codes[at] = code;
            known = at == known ? known + 1 : known;
            counts[at] += get(&from->count);
        }
    }
    for (size_t i = 0; i < known; i++) {
        (void)fgw_buf_appendf(out, "fgw_s3_errors_total{code=\"%s\"} %" PRIu64 "\n", codes[i],
                              counts[i]);
    }
}

void fgw_metrics_render(struct fgw_metrics *metrics, struct fgw_buf *out)
{
    uint64_t received = 0;
    uint64_t sent = 0;
    render_requests(metrics, out);
    render_latency(metrics, out);
    render_errors(metrics, out);
    for (unsigned w = 0; w < metrics->worker_count; w++) {
        received += get(&metrics->workers[w].received_bytes);
        sent += get(&metrics->workers[w].sent_bytes);
    }
    fgw_metrics_counter(out, "fgw_s3_received_bytes_total", "Bytes of request bodies.", received);
    fgw_metrics_counter(out, "fgw_s3_sent_bytes_total", "Bytes of answer bodies.", sent);
    for (size_t i = 0; i < metrics->writer_count; i++) {
        metrics->writers[i].writer(metrics->writers[i].context, out);
    }
}
