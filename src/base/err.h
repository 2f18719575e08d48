/* err.h: the one error type, and the error context a request carries.
 *
 * Functions that can fail return enum fgw_err by value (FGW_OK is 0) and leave their out_
 * parameters untouched on failure. What a person must know beyond the code goes into a
 * struct fgw_error that the caller hands down; it is never thread-local. All rows: errors.def.
 */
#ifndef FGW_BASE_ERR_H
#define FGW_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

enum fgw_err {
    FGW_OK = 0,
#define FGW_ERROR(name, code, status, retryable, text) FGW_ERR_##name,
#include "base/errors.def"
#undef FGW_ERROR
    FGW_ERR_COUNT
};

#define FGW_MUST_CHECK __attribute__((warn_unused_result))

/* Symbolic name ("NO_SUCH_KEY"; "OK"), S3 code ("NoSuchKey"), HTTP status, default text. */
const char *fgw_err_name(enum fgw_err err);
const char *fgw_err_s3_code(enum fgw_err err);
int fgw_err_http_status(enum fgw_err err);
const char *fgw_err_text(enum fgw_err err);
/* True when the same request may succeed later without a change. */
bool fgw_err_retryable(enum fgw_err err);
/* Maps errno (ENOSPC, EDQUOT -> NOSPACE; ENOMEM -> NOMEM; ETIMEDOUT -> TIMEOUT; else IO). */
enum fgw_err fgw_err_from_errno(int error_number);

enum { FGW_ERROR_EXTRA_MAX = 6 };

/* What failed, where, why and what to do. One a request or command; zero-initialise. */
struct fgw_error {
    enum fgw_err code;
    char message[480]; /* replaces the default text when not empty */
    struct {
        const char *name; /* static string: an XML element (e.g. "Region", "Condition") */
        char value[200];
    } extra[FGW_ERROR_EXTRA_MAX];
    unsigned extra_count;
};

void fgw_error_init(struct fgw_error *error);
/* Sets code and formatted message (either may be NULL: then only the code is kept); returns code,
 * so `return fgw_error_set(e, FGW_ERR_X, "...")` reads well. `error` may be NULL. */
enum fgw_err fgw_error_set(struct fgw_error *error, enum fgw_err code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds an element for the XML error body; silently full after FGW_ERROR_EXTRA_MAX. */
void fgw_error_add(struct fgw_error *error, const char *static_name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The message if there is one, else the default text of its code. */
const char *fgw_error_message(const struct fgw_error *error);

#endif
