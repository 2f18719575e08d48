/* test_encode.c: every request against its exact bytes (native_protocol_v4.spec, sections 2-4). */
#include "fixtures.h"

static void expect(struct fgw_buf *got, const char *hex)
{
    struct fgw_buf want;
    fgw_buf_init(&want, 0);
    put_hex(&want, hex);
    assert_int_equal(fgw_buf_status(got), FGW_OK);
    assert_int_equal(got->len, want.len);
    assert_memory_equal(got->ptr, want.ptr, want.len);
    fgw_buf_deinit(&want);
    fgw_buf_clear(got);
}

static void connection_set_up(void **state)
{
    (void)state;
    struct fgw_buf out;
    fgw_buf_init(&out, 4096);
    fgw_cql_encode_options(&out, 0);
    expect(&out, "04 00 0000 05 00000000");
    fgw_cql_encode_startup(&out, 1);
    expect(&out, "04 00 0001 01 00000028 0002"
                 "000b 43514c5f56455253494f4e 0005 332e302e30"
                 "000b 4452495645525f4e414d45 0003 666777");
    fgw_cql_encode_auth(&out, 2, FGW_LIT("cassandra"), FGW_LIT("pw"));
    expect(&out, "04 00 0002 0f 00000011 0000000d 00 63617373616e647261 00 7077");
    fgw_buf_deinit(&out);
}

static void statements(void **state)
{
    (void)state;
    struct fgw_buf params;
    struct fgw_buf out;
    fgw_buf_init(&params, 4096);
    fgw_buf_init(&out, 4096);
    fgw_cql_encode_prepare(&out, 0x0102, FGW_LIT("SELECT"));
    expect(&out, "04 00 0102 09 0000000a 00000006 53454c454354");

    fgw_cql_encode_params(&params, &(struct fgw_cql_params){.consistency = FGW_CQL_QUORUM});
    fgw_cql_encode_query(&out, 3, FGW_LIT("X"), fgw_buf_bytes(&params));
    expect(&out, "04 00 0003 07 00000008 00000001 58 0004 00");

    static const uint8_t UUID[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    struct fgw_cql_value values[] = {
        fgw_cql_text(FGW_LIT("ab")), fgw_cql_blob(fgw_bytes(NULL, 0)),
        fgw_cql_bigint(-2),          fgw_cql_int(258),
        fgw_cql_boolean(true),       fgw_cql_timestamp(1),
        fgw_cql_uuid(UUID),          fgw_cql_null(),
    };
    fgw_buf_clear(&params);
    fgw_cql_encode_params(&params, &(struct fgw_cql_params){
                                       .consistency = FGW_CQL_LOCAL_QUORUM,
                                       .with_serial = true,
                                       .serial_consistency = FGW_CQL_SERIAL,
                                       .page_size = 100,
                                       .paging_state = FGW_LIT("\x01\x02\x03"),
                                       .values = values,
                                       .value_count = sizeof values / sizeof values[0],
                                   });
    fgw_cql_encode_execute(&out, 4, FGW_LIT("\xca\xfe"), fgw_buf_bytes(&params));
    expect(&out, "04 00 0004 0a 0000005d 0002 cafe 0006 1d 0008"
                 "00000002 6162  00000000  00000008 fffffffffffffffe  00000004 00000102"
                 "00000001 01  00000008 0000000000000001"
                 "00000010 000102030405060708090a0b0c0d0e0f  ffffffff"
                 "00000064  00000003 010203  0008");
    fgw_buf_deinit(&params);
    fgw_buf_deinit(&out);
}

static void batch(void **state)
{
    (void)state;
    struct fgw_buf out;
    fgw_buf_init(&out, 4096);
    struct fgw_cql_value one = fgw_cql_int(1);
    struct fgw_cql_batch_item items[] = {
        {.id = FGW_LIT("\x0a\x0b"), .values = &one, .value_count = 1},
        {.text = FGW_LIT("D")},
    };
    fgw_cql_encode_batch(&out, 5, items, 2, FGW_CQL_QUORUM);
    expect(&out, "04 00 0005 0d 0000001d 01 0002"
                 "01 0002 0a0b 0001 00000004 00000001"
                 "00 00000001 44 0000"
                 "0004 00");
    fgw_buf_deinit(&out);
}

static void two_frames_share_a_buffer(void **state)
{
    (void)state;
    struct fgw_buf out;
    fgw_buf_init(&out, 4096);
    fgw_cql_encode_options(&out, 0);
    fgw_cql_encode_prepare(&out, 1, FGW_LIT("X"));
    expect(&out, "04 00 0000 05 00000000  04 00 0001 09 00000005 00000001 58");
    fgw_buf_deinit(&out);
}

static void a_request_above_the_maximum_is_reported(void **state)
{
    (void)state;
    struct fgw_buf out;
    fgw_buf_init(&out, 64);
    static uint8_t big[128];
    fgw_cql_encode_prepare(&out, 0, fgw_bytes(big, sizeof big));
    assert_int_equal(fgw_buf_status(&out), FGW_ERR_TOO_LARGE);
    fgw_buf_deinit(&out);
}

static void values_fit_their_columns(void **state)
{
    (void)state;
    struct fgw_cql_value text = fgw_cql_str("x");
    struct fgw_cql_value null = fgw_cql_null();
    struct fgw_cql_value integer = fgw_cql_int(1);
    struct fgw_cql_value uuid = fgw_cql_uuid((const uint8_t[16]){0});
    assert_true(fgw_cql_value_fits(&text, FGW_CQL_TYPE_TEXT));
    assert_false(fgw_cql_value_fits(&text, FGW_CQL_TYPE_BLOB));
    assert_true(fgw_cql_value_fits(&null, FGW_CQL_TYPE_MAP));
    assert_true(fgw_cql_value_fits(&integer, FGW_CQL_TYPE_INT));
    assert_false(fgw_cql_value_fits(&integer, FGW_CQL_TYPE_BIGINT));
    assert_true(fgw_cql_value_fits(&uuid, FGW_CQL_TYPE_TIMEUUID));
    assert_string_equal(fgw_cql_type_name(FGW_CQL_TYPE_TIMESTAMP), "timestamp");
    assert_string_equal(fgw_cql_type_name(0x7777), "other");
    assert_string_equal(fgw_cql_value_kind_name(FGW_CQL_VALUE_UUID), "uuid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connection_set_up),
        cmocka_unit_test(statements),
        cmocka_unit_test(batch),
        cmocka_unit_test(two_frames_share_a_buffer),
        cmocka_unit_test(a_request_above_the_maximum_is_reported),
        cmocka_unit_test(values_fit_their_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
