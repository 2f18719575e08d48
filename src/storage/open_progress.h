/* open_progress.h: what opening a directory says of itself while it takes long: to whoever asked
 * (options.progress), else into the log. */
#ifndef FGW_STORAGE_OPEN_PROGRESS_H
#define FGW_STORAGE_OPEN_PROGRESS_H

#include <stdint.h>

struct fgw_open_progress {
    void (*say)(void *context, const char *text); /* NULL: the log */
    void *context;
    uint64_t said_ms; /* boot clock; begins with the time of opening */
};
/* At most every five seconds. */
void fgw_open_progress(struct fgw_open_progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
