/* err.c: the error table and the error context. See err.h. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct error_row {
    const char *name;
    const char *s3_code;
    int http_status;
    bool retryable;
    const char *text;
};

static const struct error_row ERROR_ROWS[FGW_ERR_COUNT] = {
    [FGW_OK] = {"OK", "OK", 200, false, "OK"},
#define FGW_ERROR(name, code, status, retry, text) \
    [FGW_ERR_##name] = {#name, code, status, retry, text},
#include "base/errors.def"
#undef FGW_ERROR
};

static const struct error_row *row_of(enum fgw_err err)
{
    return &ERROR_ROWS[(unsigned)err < FGW_ERR_COUNT ? err : FGW_ERR_INTERNAL];
}

const char *fgw_err_name(enum fgw_err err)
{
    return row_of(err)->name;
}

const char *fgw_err_s3_code(enum fgw_err err)
{
    return row_of(err)->s3_code;
}

int fgw_err_http_status(enum fgw_err err)
{
    return row_of(err)->http_status;
}

const char *fgw_err_text(enum fgw_err err)
{
    return row_of(err)->text;
}

bool fgw_err_retryable(enum fgw_err err)
{
    return row_of(err)->retryable;
}

enum fgw_err fgw_err_from_errno(int error_number)
{
    switch (error_number) {
    case 0:
        return FGW_OK;
    case ENOSPC:
    case EDQUOT:
        return FGW_ERR_NOSPACE;
    case ENOMEM:
        return FGW_ERR_NOMEM;
    case ETIMEDOUT:
        return FGW_ERR_TIMEOUT;
    default:
        return FGW_ERR_IO;
    }
}

void fgw_error_init(struct fgw_error *error)
{
    error->code = FGW_OK;
    error->message[0] = '\0';
    error->extra_count = 0;
}

enum fgw_err fgw_error_set(struct fgw_error *error, enum fgw_err code, const char *format, ...)
{
    if (error == NULL) {
        return code;
    }
    error->code = code;
    error->message[0] = '\0';
    if (format != NULL) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(error->message, sizeof error->message, format, args);
        va_end(args);
    }
    return code;
}

void fgw_error_add(struct fgw_error *error, const char *static_name, const char *format, ...)
{
    if (error == NULL || error->extra_count >= FGW_ERROR_EXTRA_MAX) {
        return;
    }
    error->extra[error->extra_count].name = static_name;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error->extra[error->extra_count].value, sizeof error->extra[0].value, format,
                    args);
    va_end(args);
    error->extra_count++;
}

const char *fgw_error_message(const struct fgw_error *error)
{
    return error->message[0] != '\0' ? error->message : fgw_err_text(error->code);
}
