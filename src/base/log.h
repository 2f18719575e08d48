/* log.h: one line an event, to standard error. Libraries return errors; whoever decides logs, once.
 * Text: "2026-11-30T17:00:00.123Z INFO subject: message key=value". JSON: one object a line with
 * time, level, subject, message. Thread-safe: a line is one write. Secrets and Authorization
 * headers never go in. */
#ifndef FGW_BASE_LOG_H
#define FGW_BASE_LOG_H

#include <stdbool.h>

enum fgw_log_level { FGW_LOG_ERROR, FGW_LOG_WARN, FGW_LOG_INFO, FGW_LOG_DEBUG, FGW_LOG_TRACE };

/* Default: FGW_LOG_INFO, text. */
void fgw_log_configure(enum fgw_log_level level, bool json);
bool fgw_log_enabled(enum fgw_log_level level);
const char *fgw_log_level_name(enum fgw_log_level level);
/* subject: the module or thing ("storage", "http"). */
void fgw_log_write(enum fgw_log_level level, const char *subject, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define fgw_log_at(level, ...) \
    do { \
        if (fgw_log_enabled(level)) { \
            fgw_log_write(level, __VA_ARGS__); \
        } \
    } while (0)
#define fgw_log_error(...) fgw_log_at(FGW_LOG_ERROR, __VA_ARGS__)
#define fgw_log_warn(...) fgw_log_at(FGW_LOG_WARN, __VA_ARGS__)
#define fgw_log_info(...) fgw_log_at(FGW_LOG_INFO, __VA_ARGS__)
#define fgw_log_debug(...) fgw_log_at(FGW_LOG_DEBUG, __VA_ARGS__)
#define fgw_log_trace(...) fgw_log_at(FGW_LOG_TRACE, __VA_ARGS__)

#endif
