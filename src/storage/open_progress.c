/* open_progress.c: see open_progress.h. */
#include "storage/open_progress.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

enum { INTERVAL_MS = 5000 };

void fgw_open_progress(struct fgw_open_progress *progress, const char *format, ...)
{
    char text[200];
    va_list args;
    uint64_t now_ms = fgw_clock_boot_ms();
    if (now_ms - progress->said_ms < INTERVAL_MS) {
        return;
    }
    progress->said_ms = now_ms;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (progress->say != NULL) {
        progress->say(progress->context, text);
    } else {
        fgw_log_info("storage", "%s", text);
    }
}
