/* cql_metrics.c: see cql_metrics.h; docs/guide/database.md names each. */
#include "bin/cql_metrics.h"

#include <inttypes.h>

#include "console/metrics.h"
#include "cql/stats.h"

static void write_requests(const struct fgw_cql_counters *counters, struct fgw_buf *out)
{
    static const char *const KINDS[FGW_CQL_REQUEST_KINDS] = {
        [FGW_CQL_READ] = "read",           [FGW_CQL_WRITE] = "write",
        [FGW_CQL_LWT] = "conditional",     [FGW_CQL_DDL] = "ddl",
        [FGW_CQL_REQUEST_BATCH] = "batch", [FGW_CQL_REQUEST_PREPARE] = "prepare"};
    fgw_metrics_family(out, "fgw_cql_requests_total", "counter", "Requests sent to the database.");
    for (size_t i = 0; i < FGW_CQL_REQUEST_KINDS; i++) {
        (void)fgw_buf_appendf(out, "fgw_cql_requests_total{kind=\"%s\"} %" PRIu64 "\n", KINDS[i],
                              counters->requests[i]);
    }
    fgw_metrics_family(out, "fgw_cql_errors_total", "counter",
                       "Error answers of the database, by what they mean.");
    for (size_t i = 0; i < FGW_CQL_CLASSES; i++) {
        (void)fgw_buf_appendf(out, "fgw_cql_errors_total{class=\"%s\"} %" PRIu64 "\n",
                              fgw_cql_class_name((enum fgw_cql_class)i), counters->errors[i]);
    }
}

static void write_latency(const struct fgw_cql_counters *counters, struct fgw_buf *out)
{
    static const char NAME[] = "fgw_cql_call_duration_seconds";
    uint64_t running = 0;
    fgw_metrics_family(out, NAME, "histogram",
                       "Calls from their start to their outcome, waiting and retries included.");
    for (size_t i = 0; i < FGW_CQL_LATENCY_BUCKETS; i++) {
        running += counters->latency[i];
        if (i + 1 < FGW_CQL_LATENCY_BUCKETS) {
            (void)fgw_buf_appendf(out, "%s_bucket{le=\"%.6f\"} %" PRIu64 "\n", NAME,
                                  (double)(UINT64_C(128) << i) / 1e6, running);
        }
    }
    (void)fgw_buf_appendf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", NAME, running);
    (void)fgw_buf_appendf(out, "%s_sum %.6f\n", NAME, (double)counters->latency_us_sum / 1e6);
    (void)fgw_buf_appendf(out, "%s_count %" PRIu64 "\n", NAME, running);
}

static void write_counters(const struct fgw_cql_counters *counters, struct fgw_buf *out)
{
    fgw_metrics_counter(out, "fgw_cql_call_failures_total", "Calls that ended with an error.",
                        counters->failed);
    fgw_metrics_counter(out, "fgw_cql_retries_total", "Requests sent again.", counters->retries);
    fgw_metrics_counter(out, "fgw_cql_reprepares_total", "Statements the server had forgotten.",
                        counters->reprepares);
    fgw_metrics_counter(out, "fgw_cql_timeouts_total", "Requests without an answer in time.",
                        counters->timeouts);
    fgw_metrics_counter(out, "fgw_cql_late_answers_total", "Answers that came after that.",
                        counters->late);
    fgw_metrics_counter(out, "fgw_cql_shed_total",
                        "Calls refused because too many waited for a connection.", counters->shed);
    fgw_metrics_counter(out, "fgw_cql_warnings_total", "Warnings in answers.", counters->warnings);
    fgw_metrics_counter(out, "fgw_cql_connects_total", "Connections made.", counters->connects);
    fgw_metrics_counter(out, "fgw_cql_disconnects_total", "Connections lost or closed.",
                        counters->disconnects);
}

#define EACH_NODE(stats_, out_, name_, type_, help_, value_) \
    do { \
        fgw_metrics_family((out_), (name_), (type_), (help_)); \
        for (size_t i_ = 0; i_ < (stats_)->node_count; i_++) { \
            const struct fgw_cql_stats_node *at = &(stats_)->nodes[i_]; \
            (void)fgw_buf_appendf((out_), "%s{node=\"%s\"} %" PRIu64 "\n", (name_), at->name, \
                                  (uint64_t)(value_)); \
        } \
    } while (0)

static void write_nodes(const struct fgw_cql_stats *stats, struct fgw_buf *out)
{
    EACH_NODE(stats, out, "fgw_cql_node_connections", "gauge",
              "Connections that are ready; 0: the node is down.", at->connections);
    EACH_NODE(stats, out, "fgw_cql_node_in_flight", "gauge", "Requests without an answer yet.",
              at->in_flight);
    EACH_NODE(stats, out, "fgw_cql_node_requests_total", "counter", "Requests sent to the node.",
              at->requests);
    EACH_NODE(stats, out, "fgw_cql_node_errors_total", "counter", "Error answers of the node.",
              at->errors);
    EACH_NODE(stats, out, "fgw_cql_node_circuit", "gauge",
              "0: closed, requests go there; 1: open, requests were not answered in time; 2: one "
              "request at a time tries.",
              at->circuit);
}

void fgw_cql_metrics_write(void *context, struct fgw_buf *out)
{
    struct fgw_cql_stats *stats = fgw_xmalloc(sizeof *stats);
    (void)context;
    fgw_cql_stats_read(stats);
    write_requests(&stats->counters, out);
    write_latency(&stats->counters, out);
    write_counters(&stats->counters, out);
    fgw_metrics_gauge(out, "fgw_cql_in_flight", "Requests without an answer yet.",
                      stats->in_flight);
    fgw_metrics_gauge(out, "fgw_cql_waiting", "Calls that wait for a connection.", stats->waiting);
    write_nodes(stats, out);
    fgw_xfree(stats);
}
