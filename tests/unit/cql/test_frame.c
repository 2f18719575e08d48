/* test_frame.c: headers, the assembler at every cut, hostile lengths, foreign peers. */
#include "fixtures.h"

static const char TWO_FRAMES[] = "84 08 0007 08 00000005 aabbccddee"
                                 "84 00 ffff 02 00000000"
                                 "84 00 7fff 06 00000002 0000";

static void check_frames(const struct fgw_cql_frame *frames)
{
    assert_int_equal(frames[0].flags, FGW_CQL_FLAG_WARNING);
    assert_int_equal(frames[0].stream, 7);
    assert_int_equal(frames[0].opcode, FGW_CQL_OP_RESULT);
    assert_int_equal(frames[0].body_len, 5);
    assert_memory_equal(frames[0].body, "\xaa\xbb\xcc\xdd\xee", 5);
    assert_int_equal(frames[1].stream, -1);
    assert_int_equal(frames[1].opcode, FGW_CQL_OP_READY);
    assert_int_equal(frames[1].body_len, 0);
    assert_int_equal(frames[2].stream, 32767);
    assert_int_equal(frames[2].body_len, 2);
}

static void any_cut_gives_the_same_frames(void **state)
{
    (void)state;
    struct fgw_buf wire;
    fgw_buf_init(&wire, 0);
    put_hex(&wire, TWO_FRAMES);
    for (size_t step = 1; step <= wire.len; step++) {
        struct fgw_cql_assembler assembler = {0};
        struct fgw_cql_frame frames[3] = {{0}};
        size_t count = 0;
        for (size_t at = 0; at < wire.len; at += step) {
            struct fgw_bytes input = fgw_bytes_sub(fgw_buf_bytes(&wire), at, step);
            while (input.len > 0) {
                struct fgw_error error = {0};
                enum fgw_err err =
                    fgw_cql_assembler_feed(&assembler, &input, &frames[count], &error);
                assert_true(err == FGW_OK || (err == FGW_ERR_END && input.len == 0));
                count += err == FGW_OK;
            }
        }
        assert_int_equal(count, 3);
        check_frames(frames);
        for (size_t i = 0; i < 3; i++) {
            fgw_cql_frame_deinit(&frames[i]);
        }
        fgw_cql_assembler_deinit(&assembler);
    }
    fgw_buf_deinit(&wire);
}

static void a_large_body_grows_as_it_arrives(void **state)
{
    (void)state;
    enum { SIZE = 300000 };
    uint8_t *body = fgw_xmalloc(SIZE);
    memset(body, 0x5a, SIZE);
    uint8_t header[FGW_CQL_HEADER_SIZE] = {0x84, 0, 0, 1, 8, 0, 0x04, 0x93, 0xe0};
    struct fgw_cql_assembler assembler = {0};
    struct fgw_cql_frame frame = {0};
    struct fgw_bytes input = fgw_bytes(header, sizeof header);
    assert_int_equal(fgw_cql_assembler_feed(&assembler, &input, &frame, NULL), FGW_ERR_END);
    size_t at = 0;
    enum fgw_err err = FGW_ERR_END;
    while (at < SIZE) {
        input = fgw_bytes_sub(fgw_bytes(body, SIZE), at, 997);
        at += input.len;
        err = fgw_cql_assembler_feed(&assembler, &input, &frame, NULL);
        /* never more than twice what has arrived (or the first allocation) */
        assert_true(err == FGW_OK || assembler.body_cap <= 2 * (at + 4096));
    }
    assert_int_equal(err, FGW_OK);
    assert_int_equal(frame.body_len, SIZE);
    assert_memory_equal(frame.body, body, SIZE);
    fgw_cql_frame_deinit(&frame);
    fgw_xfree(body);
}

static enum fgw_err feed_hex(const char *hex, struct fgw_error *error)
{
    struct fgw_buf wire;
    fgw_buf_init(&wire, 0);
    put_hex(&wire, hex);
    struct fgw_cql_assembler assembler = {0};
    struct fgw_cql_frame frame = {0};
    struct fgw_bytes input = fgw_buf_bytes(&wire);
    enum fgw_err err = fgw_cql_assembler_feed(&assembler, &input, &frame, error);
    fgw_cql_frame_deinit(&frame);
    fgw_cql_assembler_deinit(&assembler);
    fgw_buf_deinit(&wire);
    return err;
}

static void hostile_lengths_are_refused(void **state)
{
    (void)state;
    struct fgw_error error = {0};
    assert_int_equal(feed_hex("84 00 0000 08 04000001", &error), FGW_ERR_TOO_LARGE);
    assert_int_equal(feed_hex("84 00 0000 08 7fffffff", &error), FGW_ERR_TOO_LARGE);
    assert_int_equal(feed_hex("84 00 0000 08 80000000", &error), FGW_ERR_TOO_LARGE);
    assert_int_equal(feed_hex("84 00 0000 08 ffffffff", &error), FGW_ERR_TOO_LARGE);
    assert_int_equal(feed_hex("84 00 0000 08 04000000", &error), FGW_ERR_END);
}

static void other_versions_are_named(void **state)
{
    (void)state;
    struct fgw_error error = {0};
    assert_int_equal(feed_hex("85 00 0000 00 00000000", &error), FGW_ERR_PARSE);
    assert_non_null(strstr(error.message, "version 5"));
    assert_int_equal(feed_hex("04 00 0000 00 00000000", &error), FGW_ERR_PARSE);
}

static void foreign_peers_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *first;
        const char *name;
    } CASES[] = {
        {"HTTP/1.1 400 Bad Request", "15433"}, {"\x15\x03\x03\x00\x02\x02\x46", "TLS"},
        {"E\0\0\0\x8fSFATAL", "5433"},         {"SSH-2.0-x", "SSH"},
        {"\x04 echo", "no CQL server"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fgw_bytes input = fgw_bytes_str(CASES[i].first);
        input.len = input.len < 5 ? 9 : input.len; /* the Postgres one holds NULs */
        const char *name = fgw_cql_foreign_peer(input);
        assert_non_null(name);
        assert_non_null(strstr(name, CASES[i].name));
    }
    assert_null(fgw_cql_foreign_peer(FGW_LIT("\x84")));
    assert_null(fgw_cql_foreign_peer(fgw_bytes(NULL, 0)));

    struct fgw_cql_assembler assembler = {0};
    struct fgw_cql_frame frame = {0};
    struct fgw_error error = {0};
    struct fgw_bytes input = FGW_LIT("HTTP/1.1 400 Bad Request\r\n");
    assert_int_equal(fgw_cql_assembler_feed(&assembler, &input, &frame, &error), FGW_ERR_PARSE);
    assert_non_null(strstr(error.message, "YugabyteDB's web UI"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut_gives_the_same_frames),
        cmocka_unit_test(a_large_body_grows_as_it_arrives),
        cmocka_unit_test(hostile_lengths_are_refused),
        cmocka_unit_test(other_versions_are_named),
        cmocka_unit_test(foreign_peers_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
