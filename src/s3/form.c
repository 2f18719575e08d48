/* form.c: see form.h. */
#include "s3/form.h"

enum { HEAD_MAX_BYTES = 4096, BOUNDARY_MAX = 70, SLICE_BYTES = 64 * 1024 };

/* -- parameters of header values -------------------------------------------------------------- */

/* Takes one "name=value" or "name" off the front of *rest, which begins behind a ';'. Values may be
 * quoted, with backslashes before quotes and backslashes. */
static bool next_parameter(struct fgw_arena *arena, struct fgw_bytes *rest,
                           struct fgw_bytes *out_name, struct fgw_bytes *out_value)
{
    struct fgw_bytes text = fgw_bytes_trim(*rest);
    size_t at = 0;
    while (at < text.len && text.ptr[at] != '=' && text.ptr[at] != ';') {
        at++;
    }
    *out_name = fgw_bytes_trim(fgw_bytes_sub(text, 0, at));
    *out_value = (struct fgw_bytes){NULL, 0};
    if (at < text.len && text.ptr[at] == '=') {
        uint8_t *value = fgw_arena_alloc(arena, text.len + 1);
        size_t len = 0;
        bool quoted = ++at < text.len && text.ptr[at] == '"';
        at += quoted;
        while (at < text.len && text.ptr[at] != (quoted ? '"' : ';')) {
            bool escape = quoted && text.ptr[at] == '\\' && at + 1 < text.len &&
                          (text.ptr[at + 1] == '"' || text.ptr[at + 1] == '\\');
            at += escape;
            value[len++] = text.ptr[at++];
        }
        *out_value = fgw_bytes(value, len);
        if (!quoted) {
            *out_value = fgw_bytes_trim(*out_value);
        }
        while (at < text.len && text.ptr[at] != ';') {
            at++;
        }
    }
    *rest = fgw_bytes_sub(text, at + 1, SIZE_MAX);
    return out_name->len > 0;
}

/* Value of a parameter behind the first ';'; ptr NULL when absent. */
static struct fgw_bytes parameter(struct fgw_arena *arena, struct fgw_bytes header,
                                  const char *name)
{
    size_t semicolon = fgw_bytes_find_byte(header, ';');
    struct fgw_bytes rest =
        semicolon == SIZE_MAX ? FGW_LIT("") : fgw_bytes_sub(header, semicolon + 1, SIZE_MAX);
    struct fgw_bytes found;
    struct fgw_bytes value;
    while (rest.len > 0) {
        if (next_parameter(arena, &rest, &found, &value) && fgw_bytes_ieq_str(found, name)) {
            return value;
        }
    }
    return (struct fgw_bytes){NULL, 0};
}

static bool is_value(struct fgw_bytes header, const char *value)
{
    return fgw_bytes_ieq_str(
        fgw_bytes_trim(fgw_bytes_sub(header, 0, fgw_bytes_find_byte(header, ';'))), value);
}

enum fgw_err fgw_form_boundary(struct fgw_arena *arena, struct fgw_bytes content_type,
                               struct fgw_bytes *out_boundary)
{
    struct fgw_bytes boundary = parameter(arena, content_type, "boundary");
    if (!is_value(content_type, "multipart/form-data") || boundary.len == 0 ||
        boundary.len > BOUNDARY_MAX) {
        return FGW_ERR_PARSE;
    }
    *out_boundary = boundary;
    return FGW_OK;
}

/* -- the machine ------------------------------------------------------------------------------ */

void fgw_form_init(struct fgw_form *form, struct fgw_arena *arena, struct fgw_bytes boundary,
                   const struct fgw_form_handler *handler)
{
    *form = (struct fgw_form){.arena = arena, .handler = *handler, .state = FGW_FORM_PREAMBLE};
    char *delimiter = fgw_arena_printf(arena, "\r\n--%.*s", FGW_FMT(boundary));
    form->delimiter = fgw_bytes(delimiter, boundary.len + 4);
    fgw_buf_init(&form->pending, 0);
    /* the first delimiter may stand at the very front */
    (void)fgw_buf_append(&form->pending, FGW_LIT("\r\n"));
}

void fgw_form_deinit(struct fgw_form *form)
{
    fgw_buf_deinit(&form->pending);
}

static enum fgw_err take_line(struct fgw_form *form, struct fgw_bytes line,
                              struct fgw_form_part *part)
{
    size_t colon = fgw_bytes_find_byte(line, ':');
    if (colon == SIZE_MAX) {
        return FGW_ERR_MALFORMED_POST;
    }
    struct fgw_bytes name = fgw_bytes_trim(fgw_bytes_sub(line, 0, colon));
    struct fgw_bytes value = fgw_bytes_trim(fgw_bytes_sub(line, colon + 1, SIZE_MAX));
    if (fgw_bytes_ieq_str(name, "Content-Type")) {
        part->content_type = fgw_arena_copy(form->arena, value);
    }
    if (fgw_bytes_ieq_str(name, "Content-Disposition")) {
        if (!is_value(value, "form-data")) {
            return FGW_ERR_MALFORMED_POST;
        }
        part->name = parameter(form->arena, value, "name");
        part->filename = parameter(form->arena, value, "filename");
    }
    return FGW_OK;
}

static enum fgw_err take_head(struct fgw_form *form, struct fgw_bytes head)
{
    struct fgw_form_part part = {0};
    while (head.len > 0) {
        size_t end = fgw_bytes_find(head, FGW_LIT("\r\n"), 0);
        enum fgw_err err = take_line(form, fgw_bytes_sub(head, 0, end), &part);
        if (err != FGW_OK) {
            return err;
        }
        head = end == SIZE_MAX ? FGW_LIT("") : fgw_bytes_sub(head, end + 2, SIZE_MAX);
    }
    return part.name.ptr == NULL ? FGW_ERR_MALFORMED_POST
                                 : form->handler.begin(form->handler.context, &part);
}

/* Each step takes what it can off the front of pending; *out_more: another one may go on. */

static enum fgw_err step_preamble(struct fgw_form *form, bool *out_more)
{
    struct fgw_bytes pending = fgw_buf_bytes(&form->pending);
    size_t at = fgw_bytes_find(pending, form->delimiter, 0);
    *out_more = at != SIZE_MAX;
    if (*out_more) {
        fgw_buf_consume(&form->pending, at + form->delimiter.len);
        form->state = FGW_FORM_DELIMITER;
    } else if (pending.len >= form->delimiter.len) {
        fgw_buf_consume(&form->pending, pending.len - form->delimiter.len + 1);
    }
    return FGW_OK;
}

static enum fgw_err step_delimiter(struct fgw_form *form, bool *out_more)
{
    struct fgw_bytes pending = fgw_buf_bytes(&form->pending);
    if (fgw_bytes_starts_with(pending, FGW_LIT("--"))) {
        form->state = FGW_FORM_DONE;
        return FGW_OK;
    }
    size_t at = 0;
    while (at < pending.len && (pending.ptr[at] == ' ' || pending.ptr[at] == '\t')) {
        at++;
    }
    struct fgw_bytes end = fgw_bytes_sub(pending, at, 2);
    if (at > HEAD_MAX_BYTES || !fgw_bytes_starts_with(FGW_LIT("\r\n"), end)) {
        /* "-" alone may still become the closing "--" */
        bool closing = at == 0 && pending.len == 1 && pending.ptr[0] == '-';
        return closing ? FGW_OK : FGW_ERR_MALFORMED_POST;
    }
    *out_more = end.len == 2;
    if (*out_more) {
        fgw_buf_consume(&form->pending, at + 2);
        form->state = FGW_FORM_HEAD;
    }
    return FGW_OK;
}

static enum fgw_err step_head(struct fgw_form *form, bool *out_more)
{
    struct fgw_bytes pending = fgw_buf_bytes(&form->pending);
    size_t end = fgw_bytes_find(pending, FGW_LIT("\r\n\r\n"), 0);
    if (end == SIZE_MAX || end > HEAD_MAX_BYTES) {
        return pending.len > HEAD_MAX_BYTES + 4 ? FGW_ERR_MALFORMED_POST : FGW_OK;
    }
    struct fgw_bytes head = fgw_arena_copy(form->arena, fgw_bytes_sub(pending, 0, end));
    fgw_buf_consume(&form->pending, end + 4);
    form->state = FGW_FORM_DATA;
    *out_more = true;
    return take_head(form, head);
}

static enum fgw_err give(struct fgw_form *form, size_t len)
{
    struct fgw_bytes data = fgw_bytes_sub(fgw_buf_bytes(&form->pending), 0, len);
    return len == 0 ? FGW_OK : form->handler.data(form->handler.context, data);
}

static enum fgw_err step_data(struct fgw_form *form, bool *out_more)
{
    struct fgw_bytes pending = fgw_buf_bytes(&form->pending);
    size_t at = fgw_bytes_find(pending, form->delimiter, 0);
    if (at == SIZE_MAX) {
        size_t keep = form->delimiter.len - 1;
        size_t len = pending.len > keep ? pending.len - keep : 0;
        enum fgw_err err = give(form, len);
        fgw_buf_consume(&form->pending, len);
        return err;
    }
    enum fgw_err err = give(form, at);
    if (err == FGW_OK) {
        err = form->handler.end(form->handler.context);
    }
    fgw_buf_consume(&form->pending, at + form->delimiter.len);
    form->state = FGW_FORM_DELIMITER;
    *out_more = true;
    return err;
}

static enum fgw_err step(struct fgw_form *form, bool *out_more)
{
    switch (form->state) {
    case FGW_FORM_PREAMBLE:
        return step_preamble(form, out_more);
    case FGW_FORM_DELIMITER:
        return step_delimiter(form, out_more);
    case FGW_FORM_HEAD:
        return step_head(form, out_more);
    case FGW_FORM_DATA:
        return step_data(form, out_more);
    case FGW_FORM_DONE:
        break;
    }
    return FGW_OK;
}

enum fgw_err fgw_form_feed(struct fgw_form *form, struct fgw_bytes bytes)
{
    while (bytes.len > 0 && form->state != FGW_FORM_DONE) {
        struct fgw_bytes slice = fgw_bytes_sub(bytes, 0, SLICE_BYTES);
        bytes = fgw_bytes_sub(bytes, slice.len, SIZE_MAX);
        (void)fgw_buf_append(&form->pending, slice);
        bool more = true;
        while (more) {
            more = false;
            enum fgw_err err = step(form, &more);
            if (err != FGW_OK) {
                return err;
            }
        }
    }
    return FGW_OK;
}

enum fgw_err fgw_form_finish(const struct fgw_form *form)
{
    return form->state == FGW_FORM_DONE ? FGW_OK : FGW_ERR_MALFORMED_POST;
}
