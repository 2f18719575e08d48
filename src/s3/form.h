/* form.h: takes a multipart/form-data body apart while it comes in (RFC 7578, RFC 2046 section 5.1).
 * Any cut into pieces gives the same calls. Memory is bounded: the head of a part to 4 KiB, and of
 * the data only as much is held back as could begin a delimiter. A pure machine: calls back, does
 * no I/O itself. */
#ifndef FGW_S3_FORM_H
#define FGW_S3_FORM_H

#include "base/arena.h"
#include "base/bytes.h"

struct fgw_form_part {
    struct fgw_bytes name;         /* of Content-Disposition; views into the arena */
    struct fgw_bytes filename;     /* ptr NULL when there is none */
    struct fgw_bytes content_type; /* ptr NULL when there is none */
};

/* Each may end the parse with an error, which feed then returns. */
struct fgw_form_handler {
    enum fgw_err (*begin)(void *context, const struct fgw_form_part *part);
    enum fgw_err (*data)(void *context, struct fgw_bytes bytes);
    enum fgw_err (*end)(void *context);
    void *context;
};

enum fgw_form_state {
    FGW_FORM_PREAMBLE,
    FGW_FORM_DELIMITER,
    FGW_FORM_HEAD,
    FGW_FORM_DATA,
    FGW_FORM_DONE
};

struct fgw_form {
    struct fgw_arena *arena;
    struct fgw_form_handler handler;
    enum fgw_form_state state;
    struct fgw_bytes delimiter; /* CR LF "--" boundary */
    struct fgw_buf pending;     /* not taken apart yet */
};

/* Boundary of a Content-Type header; FGW_ERR_PARSE when it is no multipart/form-data or has none. */
enum fgw_err fgw_form_boundary(struct fgw_arena *arena, struct fgw_bytes content_type,
                               struct fgw_bytes *out_boundary) FGW_MUST_CHECK;
void fgw_form_init(struct fgw_form *form, struct fgw_arena *arena, struct fgw_bytes boundary,
                   const struct fgw_form_handler *handler);
/* FGW_ERR_MALFORMED_POST, or what a call answered; only deinit may follow. What comes behind the
 * closing delimiter is ignored. */
enum fgw_err fgw_form_feed(struct fgw_form *form, struct fgw_bytes bytes) FGW_MUST_CHECK;
/* FGW_ERR_MALFORMED_POST when the closing delimiter has not come. */
enum fgw_err fgw_form_finish(const struct fgw_form *form) FGW_MUST_CHECK;
void fgw_form_deinit(struct fgw_form *form);

#endif
