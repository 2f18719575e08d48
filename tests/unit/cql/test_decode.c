/* test_decode.c: response bodies: exact fixtures, every truncation, hostile counts, rows. */
#include "fixtures.h"

#include "cql/result.h"

/* columns k blob, v text, n int, m map<text, list<int>>; two rows */
static const char ROWS[] = "00000002 00000003 00000004 00000002 0909"
                           "0002 6b73 0001 74"
                           "0001 6b 0003  0001 76 000d  0001 6e 0009  0001 6d 0021 000d 0020 0009"
                           "00000002"
                           "00000002 0001  00000000      00000004 00000005  ffffffff"
                           "00000001 ff    00000001 78   ffffffff           00000004 00000000";

static void put_rows(struct fgw_buf *body)
{
    put_hex(body, ROWS);
    /* has_more and the global table: flags 3 */
    body->ptr[7] = 3;
}

static void rows(void **state)
{
    (void)state;
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    put_rows(&body);
    struct fgw_cql_result *result = fgw_cql_result_new(decode_ok(FGW_CQL_OP_RESULT, 0, &body));
    assert_int_equal(fgw_cql_result_row_count(result), 2);
    assert_true(fgw_cql_result_has_more(result));
    assert_bytes(fgw_cql_result_paging_state(result), "\x09\x09");
    assert_int_equal(fgw_cql_result_column(result, "n"), 2);
    assert_int_equal(fgw_cql_result_column(result, "nn"), -1);
    assert_int_equal(result->response->rows.columns[3].element[0], FGW_CQL_TYPE_TEXT);
    assert_int_equal(result->response->rows.columns[3].element[1], FGW_CQL_TYPE_LIST);
    assert_bytes(result->response->rows.columns[1].table, "t");

    struct fgw_bytes view;
    int32_t number = -1;
    int64_t wide = -1;
    assert_true(fgw_cql_result_next(result));
    assert_int_equal(fgw_cql_get_blob(result, "k", &view), FGW_OK);
    assert_bytes(view, "\x00\x01");
    assert_int_equal(fgw_cql_get_text(result, "v", &view), FGW_OK);
    assert_int_equal(view.len, 0);
    assert_int_equal(fgw_cql_get_int(result, "n", &number), FGW_OK);
    assert_int_equal(number, 5);
    assert_int_equal(fgw_cql_get_bigint(result, "n", &wide), FGW_ERR_CORRUPT);
    assert_int_equal(wide, -1);
    assert_int_equal(fgw_cql_get_text(result, "k", &view), FGW_ERR_CORRUPT);
    assert_true(fgw_cql_get_null(result, "m"));
    assert_true(fgw_cql_get_null(result, "absent"));
    assert_int_equal(fgw_cql_get_bigint(result, "absent", &wide), FGW_ERR_NOT_FOUND);

    assert_true(fgw_cql_result_next(result));
    assert_int_equal(fgw_cql_get_text(result, "v", &view), FGW_OK);
    assert_bytes(view, "x");
    assert_int_equal(fgw_cql_get_int(result, "n", &number), FGW_ERR_NOT_FOUND);
    assert_int_equal(number, 5);
    assert_false(fgw_cql_result_next(result));
    assert_false(fgw_cql_result_next(result));
    fgw_cql_result_rewind(result);
    assert_true(fgw_cql_result_next(result));
    fgw_cql_result_free(result);
    fgw_buf_deinit(&body);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    put_rows(&body);
    for (size_t len = 0; len < body.len; len++) {
        struct fgw_cql_response *response = NULL;
        assert_int_equal(decode_bytes(FGW_CQL_OP_RESULT, 0, fgw_bytes(body.ptr, len), &response),
                         FGW_ERR_CORRUPT);
        assert_null(response);
    }
    /* trailing bytes are tolerated */
    fgw_buf_append_str(&body, "more");
    fgw_cql_response_free(decode_ok(FGW_CQL_OP_RESULT, 0, &body));
    fgw_buf_deinit(&body);
}

static void typed_cells(void **state)
{
    (void)state;
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    put_hex(&body, "00000002 00000001 00000007 0001 6b 0001 74"
                   "0001 62 0004  0001 69 0002  0001 74 000b  0001 75 000c  0001 61 0010"
                   "0001 7a 0009  0001 73 0009"
                   "00000001"
                   "00000001 01  00000008 ffffffffffffffff  00000008 0000019ad3a9c800"
                   "00000010 000102030405060708090a0b0c0d0e0f  00000004 7f000001"
                   "00000000  00000003 010203");
    struct fgw_cql_result *result = fgw_cql_result_new(decode_ok(FGW_CQL_OP_RESULT, 0, &body));
    assert_true(fgw_cql_result_next(result));
    bool flag = false;
    int64_t wide = 0;
    int32_t number = 77;
    uint8_t uuid[16];
    struct fgw_bytes view;
    assert_int_equal(fgw_cql_get_boolean(result, "b", &flag), FGW_OK);
    assert_true(flag);
    assert_int_equal(fgw_cql_get_bigint(result, "i", &wide), FGW_OK);
    assert_true(wide == -1);
    assert_int_equal(fgw_cql_get_timestamp(result, "t", &wide), FGW_OK);
    assert_true(wide == 0x19ad3a9c800);
    assert_int_equal(fgw_cql_get_timestamp(result, "i", &wide), FGW_ERR_CORRUPT);
    assert_int_equal(fgw_cql_get_uuid(result, "u", uuid), FGW_OK);
    assert_int_equal(uuid[15], 15);
    assert_int_equal(fgw_cql_get_inet(result, "a", &view), FGW_OK);
    assert_bytes(view, "\x7f\x00\x00\x01");
    /* zero length reads as null, a wrong length as damage */
    assert_int_equal(fgw_cql_get_int(result, "z", &number), FGW_ERR_NOT_FOUND);
    assert_int_equal(fgw_cql_get_int(result, "s", &number), FGW_ERR_CORRUPT);
    assert_int_equal(number, 77);
    fgw_cql_result_free(result);
    fgw_buf_deinit(&body);
}

static void applied(void **state)
{
    (void)state;
    static const char META[] = "00000002 00000001 00000001 0001 6b 0001 74 0009 5b6170706c6965645d "
                               "0004 00000001 00000001 ";
    for (int value = 0; value < 2; value++) {
        struct fgw_buf body;
        fgw_buf_init(&body, 0);
        put_hex(&body, META);
        fgw_buf_append_byte(&body, (uint8_t)value);
        struct fgw_cql_result *result = fgw_cql_result_new(decode_ok(FGW_CQL_OP_RESULT, 0, &body));
        bool flag = value == 0;
        assert_int_equal(fgw_cql_result_applied(result, &flag), FGW_OK);
        assert_int_equal(flag, value);
        fgw_cql_result_free(result);
        fgw_buf_deinit(&body);
    }
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    put_hex(&body, "00000001");
    struct fgw_cql_result *result = fgw_cql_result_new(decode_ok(FGW_CQL_OP_RESULT, 0, &body));
    bool flag;
    assert_int_equal(fgw_cql_result_applied(result, &flag), FGW_ERR_CORRUPT);
    assert_false(fgw_cql_result_has_more(result));
    fgw_cql_result_free(result);
    fgw_buf_deinit(&body);
}

static void other_results(void **state)
{
    (void)state;
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    put_hex(&body, "00000004 0003 010203 00000001 00000002 00000001 0000 0002 6b73 0001 74"
                   "0001 6b 0003 0001 76 000d  00000004 00000000");
    struct fgw_cql_response *response = decode_ok(FGW_CQL_OP_RESULT, 0, &body);
    assert_int_equal(response->kind, FGW_CQL_RESULT_PREPARED);
    assert_bytes(response->prepared.id, "\x01\x02\x03");
    assert_int_equal(response->prepared.bind_count, 2);
    assert_int_equal(response->prepared.bind[1].type, FGW_CQL_TYPE_TEXT);
    fgw_cql_response_free(response);

    fgw_buf_clear(&body);
    put_hex(&body, "00000005 0007 43524541544544 0005 5441424c45 0002 6b73 0001 74");
    response = decode_ok(FGW_CQL_OP_RESULT, 0, &body);
    assert_bytes(response->change.target, "TABLE");
    assert_bytes(response->change.name, "t");
    fgw_cql_response_free(response);

    fgw_buf_clear(&body);
    put_hex(&body, "00000005 0007 43524541544544 0008 4b45595350414345 0002 6b73");
    response = decode_ok(FGW_CQL_OP_RESULT, 0, &body);
    assert_bytes(response->change.keyspace, "ks");
    fgw_cql_response_free(response);

    fgw_buf_clear(&body);
    put_hex(&body, "00000003 0002 6b73");
    response = decode_ok(FGW_CQL_OP_RESULT, 0, &body);
    assert_bytes(response->keyspace, "ks");
    fgw_cql_response_free(response);
    fgw_buf_deinit(&body);
}

static void set_up_answers(void **state)
{
    (void)state;
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    fgw_cql_response_free(decode_ok(FGW_CQL_OP_READY, 0, &body));
    put_text(&body, "org.apache.cassandra.auth.PasswordAuthenticator");
    struct fgw_cql_response *response = decode_ok(FGW_CQL_OP_AUTHENTICATE, 0, &body);
    assert_bytes(response->text, "org.apache.cassandra.auth.PasswordAuthenticator");
    fgw_cql_response_free(response);
    fgw_buf_clear(&body);
    put_hex(&body, "ffffffff");
    fgw_cql_response_free(decode_ok(FGW_CQL_OP_AUTH_SUCCESS, 0, &body));
    fgw_buf_clear(&body);
    put_hex(&body, "0002");
    put_text(&body, "CQL_VERSION");
    put_hex(&body, "0002");
    put_text(&body, "3.0.0");
    put_text(&body, "3.4.2");
    put_text(&body, "COMPRESSION");
    put_hex(&body, "0000");
    response = decode_ok(FGW_CQL_OP_SUPPORTED, 0, &body);
    assert_true(fgw_cql_response_supports(response, "CQL_VERSION", "3.4.2"));
    assert_false(fgw_cql_response_supports(response, "COMPRESSION", "3.4.2"));
    fgw_cql_response_free(response);
    fgw_buf_clear(&body);
    put_text(&body, "STATUS_CHANGE");
    put_text(&body, "UP");
    put_hex(&body, "04 7f000001 00002352");
    response = decode_ok(FGW_CQL_OP_EVENT, 0, &body);
    assert_bytes(response->change.kind, "UP");
    assert_int_equal(response->change.keyspace.len, 4);
    fgw_cql_response_free(response);
    fgw_buf_deinit(&body);
}

static void prefixes_are_skipped(void **state)
{
    (void)state;
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    put_hex(&body, "000102030405060708090a0b0c0d0e0f 0002");
    put_text(&body, "mind the gap");
    put_text(&body, "two");
    put_hex(&body, "0001");
    put_text(&body, "key");
    put_hex(&body, "00000002 aabb");
    size_t prefix = body.len;
    put_hex(&body, "00000003 0002 6b73");
    uint8_t flags = FGW_CQL_FLAG_TRACING | FGW_CQL_FLAG_WARNING | FGW_CQL_FLAG_PAYLOAD;
    struct fgw_cql_response *response = decode_ok(FGW_CQL_OP_RESULT, flags, &body);
    assert_bytes(response->keyspace, "ks");
    assert_int_equal(response->warning_count, 2);
    assert_bytes(response->warnings[0], "mind the gap");
    fgw_cql_response_free(response);
    for (size_t len = 0; len < prefix; len++) {
        assert_int_equal(
            decode_bytes(FGW_CQL_OP_RESULT, flags, fgw_bytes(body.ptr, len), &response),
            FGW_ERR_CORRUPT);
    }
    assert_int_equal(
        decode_bytes(FGW_CQL_OP_RESULT, FGW_CQL_FLAG_COMPRESSED, fgw_buf_bytes(&body), &response),
        FGW_ERR_CORRUPT);
    fgw_buf_deinit(&body);
}

static void hostile_counts_are_refused(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        "00000002 00000001 7fffffff 0001 6b 0001 74",          /* columns */
        "00000002 00000001 ffffffff 0001 6b 0001 74",          /* negative */
        "00000002 00000001 0000ffff 0001 6b 0001 74 0001 6b",  /* more than can be there */
        "00000002 00000001 00000000 0001 6b 0001 74 7fffffff", /* rows of nothing */
        "00000002 00000005 00000001 00000001",                 /* no metadata */
        "00000002 00000001 00000001 0001 6b 0001 74 0001 6b 0003 7fffffff",
        "00000002 00000001 00000001 0001 6b 0001 74 0001 6b 0003 00000001 7fffffff",
        "00000002 00000001 00000001 0001 6b 0001 74 0001 6b 0031 ffff 0003",
        "00000002 00000001 00000001 0001 6b 0001 74 0001 6b 0030 0000 0000 ffff",
        "00000004 0000 00000000 00000000 00000000 00000004 00000000", /* empty id */
        "00000004 0001 aa 00000000 00000000 7fffffff",
        "00000009",
        "ffffffff",
    };
    for (size_t i = 0; i < sizeof BODIES / sizeof BODIES[0]; i++) {
        struct fgw_buf body;
        fgw_buf_init(&body, 0);
        put_hex(&body, BODIES[i]);
        struct fgw_cql_response *response = NULL;
        assert_int_equal(decode_bytes(FGW_CQL_OP_RESULT, 0, fgw_buf_bytes(&body), &response),
                         FGW_ERR_CORRUPT);
        fgw_buf_deinit(&body);
    }
    struct fgw_cql_response *response = NULL;
    assert_int_equal(decode_bytes(0x77, 0, fgw_bytes(NULL, 0), &response), FGW_ERR_CORRUPT);
    assert_int_equal(decode_bytes(FGW_CQL_OP_SUPPORTED, 0, FGW_LIT("\xff\xff"), &response),
                     FGW_ERR_CORRUPT);
}

static void endless_nesting_is_refused(void **state)
{
    (void)state;
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    put_hex(&body, "00000002 00000001 00000001 0001 6b 0001 74 0001 6b");
    for (int i = 0; i < 100000; i++) {
        put_hex(&body, "0020");
    }
    struct fgw_cql_response *response = NULL;
    assert_int_equal(decode_bytes(FGW_CQL_OP_RESULT, 0, fgw_buf_bytes(&body), &response),
                     FGW_ERR_CORRUPT);
    fgw_buf_deinit(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(typed_cells),
        cmocka_unit_test(applied),
        cmocka_unit_test(other_results),
        cmocka_unit_test(set_up_answers),
        cmocka_unit_test(prefixes_are_skipped),
        cmocka_unit_test(hostile_counts_are_refused),
        cmocka_unit_test(endless_nesting_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
