/* metrics.h: counters of a process in Prometheus text format (exposition format 0.0.4).
 *
 * Requests are counted per worker without sharing; rendering adds the workers up, so a number may be
 * one request behind another. Gauges of other modules come in through writers.
 */
#ifndef FGW_CONSOLE_METRICS_H
#define FGW_CONSOLE_METRICS_H

#include "base/bytes.h"

struct fgw_metrics;

/* operations: static names, copied by pointer. workers: as of fgw_workers_count. */
struct fgw_metrics *fgw_metrics_new(unsigned workers, const char *const *operations, size_t count);
void fgw_metrics_free(struct fgw_metrics *metrics);

struct fgw_metrics_request {
    const char *operation; /* one of the names given, or anything else: "Unknown" */
    int status;
    const char *error_code; /* static string or NULL */
    uint64_t duration_ns;
    uint64_t received_bytes;
    uint64_t sent_bytes;
};
/* On a worker thread. */
void fgw_metrics_add(struct fgw_metrics *metrics, const struct fgw_metrics_request *request);

/* Appends lines of its own; called by render on the renderer's thread. */
typedef void fgw_metrics_writer(void *context, struct fgw_buf *out);
/* At start-up only; at most 16. */
void fgw_metrics_register(struct fgw_metrics *metrics, fgw_metrics_writer *writer, void *context);
void fgw_metrics_render(struct fgw_metrics *metrics, struct fgw_buf *out);

/* For writers: the HELP and TYPE lines before the samples of a name; and both with one sample. */
void fgw_metrics_family(struct fgw_buf *out, const char *name, const char *type, const char *help);
void fgw_metrics_gauge(struct fgw_buf *out, const char *name, const char *help, uint64_t value);
void fgw_metrics_counter(struct fgw_buf *out, const char *name, const char *help, uint64_t value);

#endif
