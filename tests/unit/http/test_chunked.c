/* test_chunked.c: the chunked coding, whole and cut at every byte; broken forms. */
#include "cmocka_all.h"

#include "base/check.h"
#include "http/chunked.h"

/* Feeds `raw` in steps of `step` bytes; collects the data in `out`. Returns the last result and how
 * much of the input is left. */
static enum fgw_err decode(struct fgw_bytes raw, size_t step, struct fgw_buf *out, size_t *out_left)
{
    struct fgw_http_chunked chunked = {0};
    enum fgw_err err = FGW_ERR_AGAIN;
    fgw_buf_clear(out);
    for (size_t at = 0; at < raw.len && err == FGW_ERR_AGAIN; at += step) {
        struct fgw_bytes input = fgw_bytes_sub(raw, at, step);
        struct fgw_bytes piece;
        while ((err = fgw_http_chunked_next(&chunked, &input, &piece)) == FGW_OK) {
            assert_true(piece.len > 0);
            (void)fgw_buf_append(out, piece);
        }
        *out_left = input.len;
    }
    return err;
}

struct row {
    const char *raw;
    size_t len;
    const char *data;
    enum fgw_err expected;
};
#define ROW(raw, data, err) \
    { \
        raw, sizeof(raw) - 1, data, FGW_ERR_##err \
    }

static const struct row rows[] = {
    ROW("0\r\n\r\n", "", END),
    ROW("5\r\nhello\r\n0\r\n\r\n", "hello", END),
    ROW("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", END),
    ROW("00005\r\nhello\r\n000\r\n\r\n", "hello", END),
    ROW("A\r\n0123456789\r\n0\r\n\r\n", "0123456789", END),
    ROW("5;ext=\"v\";b\r\nhello\r\n0;last\r\n\r\n", "hello", END),
    ROW("5\r\nhello\r\n0\r\nx-amz-checksum-crc32: AAAA\r\nB:\r\n\r\n", "hello", END),
    ROW("5\r\nhel", "hel", AGAIN),
    ROW("5\r\nhello\r\n0\r\n", "hello", AGAIN),
    ROW("5\nhello\r\n0\r\n\r\n", "", BAD_REQUEST),
    ROW("5\r\nhello\n0\r\n\r\n", "hello", BAD_REQUEST),
    ROW("5\r\nhello!\r\n0\r\n\r\n", "hello", BAD_REQUEST),
    ROW("5 \r\nhello\r\n0\r\n\r\n", "", BAD_REQUEST),
    ROW(" 5\r\nhello\r\n0\r\n\r\n", "", BAD_REQUEST),
    ROW("+5\r\nhello\r\n0\r\n\r\n", "", BAD_REQUEST),
    ROW("-5\r\nhello\r\n0\r\n\r\n", "", BAD_REQUEST),
    ROW("0x5\r\nhello\r\n0\r\n\r\n", "", BAD_REQUEST),
    ROW("g\r\n", "", BAD_REQUEST),
    ROW("\r\n", "", BAD_REQUEST),
    ROW("10000000000000000\r\n", "", BAD_REQUEST),
    ROW("00000000000000005\r\nhello\r\n0\r\n\r\n", "", BAD_REQUEST),
    ROW("5\r\nhello\r\n0\r\n\n", "hello", BAD_REQUEST),
    ROW("5\r\nhello\r\n0\r\nno colon\r\n\r\n", "hello", BAD_REQUEST),
    ROW("5\r\nhello\r\n0\r\nNoColon\r\n\r\n", "hello", BAD_REQUEST),
    ROW("5\r\nhello\r\n0\r\n: v\r\n\r\n", "hello", BAD_REQUEST),
    ROW("5\r\nhello\r\n0\r\na: b\n\r\n", "hello", BAD_REQUEST),
    ROW("5;a\nb\r\nhello\r\n0\r\n\r\n", "", BAD_REQUEST),
    ROW("5;a\0b\r\nhello\r\n0\r\n\r\n", "", BAD_REQUEST),
    ROW("5\r\r\nhello\r\n0\r\n\r\n", "", BAD_REQUEST),
};

static void rows_decode_however_cut(void **state)
{
    (void)state;
    struct fgw_buf out;
    fgw_buf_init(&out, 0);
    for (size_t i = 0; i < FGW_COUNT_OF(rows); i++) {
        for (size_t step = 1; step <= rows[i].len; step++) {
            size_t left = 0;
            enum fgw_err err = decode(fgw_bytes(rows[i].raw, rows[i].len), step, &out, &left);
            if (err != rows[i].expected) {
                fail_msg("row %zu step %zu: %s", i, step, fgw_err_name(err));
            }
            assert_true(fgw_bytes_eq_str(fgw_buf_bytes(&out), rows[i].data));
        }
    }
    fgw_buf_deinit(&out);
}

static void what_follows_is_left_alone(void **state)
{
    (void)state;
    struct fgw_bytes input = FGW_LIT("1\r\na\r\n0\r\n\r\nGET / HTTP/1.1");
    struct fgw_http_chunked chunked = {0};
    struct fgw_bytes piece;
    assert_int_equal(fgw_http_chunked_next(&chunked, &input, &piece), FGW_OK);
    assert_int_equal(fgw_http_chunked_next(&chunked, &input, &piece), FGW_ERR_END);
    assert_true(fgw_bytes_eq_str(input, "GET / HTTP/1.1"));
    assert_int_equal(fgw_http_chunked_next(&chunked, &input, &piece), FGW_ERR_END);
}

static void extensions_are_bounded(void **state)
{
    (void)state;
    struct fgw_http_chunked chunked = {0};
    struct fgw_bytes piece;
    enum fgw_err err = FGW_ERR_AGAIN;
    unsigned rounds = 0;
    for (; err == FGW_ERR_AGAIN || err == FGW_OK; rounds++) {
        struct fgw_bytes input = FGW_LIT("1;abcdefghijklmnopqrstuvwxyz\r\nx\r\n");
        while ((err = fgw_http_chunked_next(&chunked, &input, &piece)) == FGW_OK) {
        }
        assert_true(rounds < 1000);
    }
    assert_int_equal(err, FGW_ERR_BAD_REQUEST);
    assert_true(rounds > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_decode_however_cut),
        cmocka_unit_test(what_follows_is_left_alone),
        cmocka_unit_test(extensions_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
