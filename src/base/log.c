/* log.c: see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/timefmt.h"

static _Atomic int configured_level = FGW_LOG_INFO;
static _Atomic bool configured_json;

static const char *const LEVEL_NAMES[] = {"ERROR", "WARN", "INFO", "DEBUG", "TRACE"};

void fgw_log_configure(enum fgw_log_level level, bool json)
{
    atomic_store(&configured_level, (int)level);
    atomic_store(&configured_json, json);
}

bool fgw_log_enabled(enum fgw_log_level level)
{
    return (int)level <= atomic_load_explicit(&configured_level, memory_order_relaxed);
}

const char *fgw_log_level_name(enum fgw_log_level level)
{
    return LEVEL_NAMES[level];
}

static void append_json_string(struct fgw_buf *line, const char *text)
{
    (void)fgw_buf_append_byte(line, '"');
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\') {
            (void)fgw_buf_append_byte(line, '\\');
            (void)fgw_buf_append_byte(line, c);
        } else if (c < 0x20) {
            (void)fgw_buf_appendf(line, "\\u%04x", c);
        } else {
            (void)fgw_buf_append_byte(line, c);
        }
    }
    (void)fgw_buf_append_byte(line, '"');
}

/* Control bytes could forge a line or move a terminal's cursor. */
static void append_plain(struct fgw_buf *line, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f) {
            (void)fgw_buf_appendf(line, "\\x%02x", c);
        } else if (c == '\n') {
            (void)fgw_buf_append_str(line, "\n    ");
        } else {
            (void)fgw_buf_append_byte(line, c);
        }
    }
}

void fgw_log_write(enum fgw_log_level level, const char *subject, const char *format, ...)
{
    struct fgw_buf message;
    struct fgw_buf line;
    fgw_buf_init(&message, 0);
    fgw_buf_init(&line, 0);
    char stamp[FGW_TIME_ISO8601_SIZE];
    fgw_time_iso8601(fgw_clock_wall_ms(), stamp);

    va_list args;
    va_start(args, format);
    int needed = vsnprintf(NULL, 0, format, args);
    va_end(args);
    (void)fgw_buf_reserve(&message, (size_t)needed + 1);
    va_start(args, format);
    (void)vsnprintf((char *)message.ptr, (size_t)needed + 1, format, args);
    va_end(args);

    if (atomic_load_explicit(&configured_json, memory_order_relaxed)) {
        (void)fgw_buf_appendf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"subject\":", stamp,
                              LEVEL_NAMES[level]);
        append_json_string(&line, subject);
        (void)fgw_buf_append_str(&line, ",\"message\":");
        append_json_string(&line, (const char *)message.ptr);
        (void)fgw_buf_append_str(&line, "}\n");
    } else {
        (void)fgw_buf_appendf(&line, "%s %s %s: ", stamp, LEVEL_NAMES[level], subject);
        append_plain(&line, (const char *)message.ptr);
        (void)fgw_buf_append_byte(&line, '\n');
    }
    ssize_t ignored = write(STDERR_FILENO, line.ptr, line.len);
    (void)ignored;
    fgw_buf_deinit(&message);
    fgw_buf_deinit(&line);
}
