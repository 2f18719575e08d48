/* fuzz_form.c: multipart/form-data. The first byte says into how large pieces the rest is cut; the
 * calls must be those of the whole in one piece. */
#include "base/check.h"
#include "s3/form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add(struct fgw_buf *record, struct fgw_bytes bytes)
{
    (void)fgw_buf_append(record, bytes);
    (void)fgw_buf_append_byte(record, 0);
}

static enum fgw_err on_begin(void *context, const struct fgw_form_part *part)
{
    add(context, part->name);
    add(context, part->filename);
    add(context, part->content_type);
    return FGW_OK;
}

static enum fgw_err on_data(void *context, struct fgw_bytes bytes)
{
    FGW_CHECK(bytes.len > 0);
    return fgw_buf_append(context, bytes);
}

static enum fgw_err on_end(void *context)
{
    add(context, FGW_LIT(";"));
    return FGW_OK;
}

static enum fgw_err run(struct fgw_bytes body, size_t step, struct fgw_buf *record)
{
    struct fgw_arena arena;
    struct fgw_form form;
    struct fgw_bytes boundary = FGW_LIT("b");
    struct fgw_form_handler handler = {on_begin, on_data, on_end, record};
    fgw_arena_init(&arena, 0);
    size_t line = fgw_bytes_find_byte(body, '\n');
    if (line != SIZE_MAX &&
        fgw_form_boundary(&arena, fgw_bytes_sub(body, 0, line), &boundary) == FGW_OK) {
        body = fgw_bytes_sub(body, line + 1, SIZE_MAX);
    }
    fgw_form_init(&form, &arena, boundary, &handler);
    enum fgw_err err = FGW_OK;
    for (size_t at = 0; err == FGW_OK && at < body.len; at += step) {
        err = fgw_form_feed(&form, fgw_bytes_sub(body, at, step));
    }
    err = err == FGW_OK ? fgw_form_finish(&form) : err;
    fgw_form_deinit(&form);
    fgw_arena_deinit(&arena);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fgw_buf whole;
    struct fgw_buf cut;
    if (size < 2) {
        return 0;
    }
    struct fgw_bytes body = fgw_bytes(data + 1, size - 1);
    fgw_buf_init(&whole, 0);
    fgw_buf_init(&cut, 0);
    enum fgw_err err = run(body, body.len, &whole);
    FGW_CHECK(run(body, 1 + data[0] % 16, &cut) == err);
    FGW_CHECK(err != FGW_OK || fgw_bytes_eq(fgw_buf_bytes(&whole), fgw_buf_bytes(&cut)));
    fgw_buf_deinit(&whole);
    fgw_buf_deinit(&cut);
    return 0;
}
