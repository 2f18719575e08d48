/* test_classify.c: ERROR bodies as bytes, their fields, and the class each one falls into
 * (spec/ycql.md sections 2.1 to 2.3 and 5.5). */
#include "fixtures.h"

#include "cql/classify.h"

struct error_case {
    const char *code; /* hex */
    const char *message;
    const char *tail; /* hex, behind the message */
    enum fgw_cql_statement_kind kind;
    enum fgw_cql_class class;
    enum fgw_err err;
};

static const struct error_case CASES[] = {
    /* YCQL */
    {"00002200",
     "Duplicate Object. Object 'filecoingw_s3.multipartuploads' already exists\nCREATE x\n^^^\n"
     " (ql error -202)",
     "", FGW_CQL_DDL, FGW_CQL_CLASS_ALREADY_EXISTS, FGW_ERR_EXISTS},
    {"00002200", "Keyspace Already Exists. x (ql error -307)", "", FGW_CQL_DDL,
     FGW_CQL_CLASS_ALREADY_EXISTS, FGW_ERR_EXISTS},
    {"00002200", "Execution Error. The column v conflicts with the existing column (ql error -300)",
     "", FGW_CQL_DDL, FGW_CQL_CLASS_ALREADY_EXISTS, FGW_ERR_EXISTS},
    {"00002200", "Duplicate Column. (ql error -204)", "", FGW_CQL_DDL, FGW_CQL_CLASS_ALREADY_EXISTS,
     FGW_ERR_EXISTS},
    {"00002200", "Object Not Found. x (ql error -301)", "", FGW_CQL_READ,
     FGW_CQL_CLASS_NOT_FOUND_SCHEMA, FGW_ERR_NOT_FOUND},
    {"00002200", "Keyspace Not Found. (ql error -308).", "", FGW_CQL_LWT,
     FGW_CQL_CLASS_NOT_FOUND_SCHEMA, FGW_ERR_NOT_FOUND},
    {"00002200", "Wrong Metadata Version. (ql error -303)", "", FGW_CQL_READ,
     FGW_CQL_CLASS_NOT_FOUND_SCHEMA, FGW_ERR_NOT_FOUND},
    {"00002200", "Execution Error. RPC timed out after passed its deadline (ql error -300)", "",
     FGW_CQL_LWT, FGW_CQL_CLASS_TRANSIENT_UNKNOWN, FGW_ERR_UNKNOWN_OUTCOME},
    {"00002200", "Execution Error. RPC timed out after passed its deadline (ql error -300)", "",
     FGW_CQL_READ, FGW_CQL_CLASS_TRANSIENT_UNKNOWN, FGW_ERR_UNAVAILABLE},
    {"00002200", "Tablet Not Found. (ql error -309)", "", FGW_CQL_WRITE,
     FGW_CQL_CLASS_TRANSIENT_UNKNOWN, FGW_ERR_UNKNOWN_OUTCOME},
    {"00002200", "Invalid Arguments. Service unavailable (ql error -304)", "", FGW_CQL_WRITE,
     FGW_CQL_CLASS_TRANSIENT_UNKNOWN, FGW_ERR_UNKNOWN_OUTCOME},
    /* the quoted statement's own words do not decide */
    {"00002200", "Invalid Arguments. Bad value\nUPDATE lease SET leader = ? (ql error -304)", "",
     FGW_CQL_WRITE, FGW_CQL_CLASS_BUG, FGW_ERR_INTERNAL},
    {"00002200", "Undefined Column. x (ql error -203)", "", FGW_CQL_READ, FGW_CQL_CLASS_BUG,
     FGW_ERR_INTERNAL},
    {"00002100", "Unauthorized (ql error -4)", "", FGW_CQL_READ, FGW_CQL_CLASS_AUTH,
     FGW_ERR_ACCESS_DENIED},
    {"00000000", "Internal error", "", FGW_CQL_WRITE, FGW_CQL_CLASS_TRANSIENT_UNKNOWN,
     FGW_ERR_UNKNOWN_OUTCOME},
    /* Cassandra, ScyllaDB */
    {"00001300",
     "Operation failed - received 0 responses and 1 failures: READ_TOO_MANY_TOMBSTONES from "
     "/127.0.0.1:7000",
     "0004 00000000 00000001 00000001 00", FGW_CQL_READ, FGW_CQL_CLASS_TOMBSTONES,
     FGW_ERR_TOO_LARGE},
    {"00001300", "Operation failed - received 0 responses and 1 failures: TIMEOUT from x",
     "0004 00000000 00000001 00000001 00", FGW_CQL_READ, FGW_CQL_CLASS_TRANSIENT_UNKNOWN,
     FGW_ERR_UNAVAILABLE},
    {"00002400", "Cannot add already existing table", "0002 6b73 0001 74", FGW_CQL_DDL,
     FGW_CQL_CLASS_ALREADY_EXISTS, FGW_ERR_EXISTS},
    {"00002200", "unconfigured table nope", "", FGW_CQL_READ, FGW_CQL_CLASS_NOT_FOUND_SCHEMA,
     FGW_ERR_NOT_FOUND},
    {"00002200", "table ks.nope does not exist", "", FGW_CQL_READ, FGW_CQL_CLASS_NOT_FOUND_SCHEMA,
     FGW_ERR_NOT_FOUND},
    {"00002200", "Keyspace 'nope' doesn't exist", "", FGW_CQL_DDL, FGW_CQL_CLASS_NOT_FOUND_SCHEMA,
     FGW_ERR_NOT_FOUND},
    {"00002200", "Column with name 'v' already exists", "", FGW_CQL_DDL,
     FGW_CQL_CLASS_ALREADY_EXISTS, FGW_ERR_EXISTS},
    {"00002200", "Undefined column name v in table ks.t", "", FGW_CQL_READ, FGW_CQL_CLASS_BUG,
     FGW_ERR_INTERNAL},
    {"00001000", "no replicas", "0004 00000002 00000001", FGW_CQL_WRITE,
     FGW_CQL_CLASS_TRANSIENT_NOT_APPLIED, FGW_ERR_UNAVAILABLE},
    {"00001000", "no replicas", "0008 00000002 00000001", FGW_CQL_LWT,
     FGW_CQL_CLASS_TRANSIENT_NOT_APPLIED, FGW_ERR_UNAVAILABLE},
    {"00001000", "no replicas", "0004 00000002 00000001", FGW_CQL_LWT,
     FGW_CQL_CLASS_TRANSIENT_UNKNOWN, FGW_ERR_UNKNOWN_OUTCOME},
    {"00001001", "busy", "", FGW_CQL_LWT, FGW_CQL_CLASS_TRANSIENT_NOT_APPLIED, FGW_ERR_SLOW_DOWN},
    {"00001002", "bootstrapping", "", FGW_CQL_LWT, FGW_CQL_CLASS_TRANSIENT_NOT_APPLIED,
     FGW_ERR_UNAVAILABLE},
    {"00001100", "timed out", "0008 00000001 00000002 0003 434153", FGW_CQL_LWT,
     FGW_CQL_CLASS_TRANSIENT_UNKNOWN, FGW_ERR_UNKNOWN_OUTCOME},
    {"00001200", "timed out", "0004 00000001 00000002 01", FGW_CQL_READ,
     FGW_CQL_CLASS_TRANSIENT_UNKNOWN, FGW_ERR_UNAVAILABLE},
    {"00001300", "failed", "0004 00000001 00000002 00000001 00", FGW_CQL_READ,
     FGW_CQL_CLASS_TRANSIENT_UNKNOWN, FGW_ERR_UNAVAILABLE},
    {"00001500", "failed", "0004 00000001 00000002 00000001 0006 53494d504c45", FGW_CQL_WRITE,
     FGW_CQL_CLASS_TRANSIENT_UNKNOWN, FGW_ERR_UNKNOWN_OUTCOME},
    {"00001700", "cas unknown", "", FGW_CQL_LWT, FGW_CQL_CLASS_TRANSIENT_UNKNOWN,
     FGW_ERR_UNKNOWN_OUTCOME},
    {"00002500", "unprepared", "0002 abcd", FGW_CQL_LWT, FGW_CQL_CLASS_REPREPARE,
     FGW_ERR_UNAVAILABLE},
    {"00002500", "unprepared", "0002 abce", FGW_CQL_LWT, FGW_CQL_CLASS_PROTO, FGW_ERR_INTERNAL},
    {"00000100", "bad credentials", "", FGW_CQL_READ, FGW_CQL_CLASS_AUTH, FGW_ERR_ACCESS_DENIED},
    {"0000000a", "protocol", "", FGW_CQL_READ, FGW_CQL_CLASS_PROTO, FGW_ERR_INTERNAL},
    {"00002000", "line 1:7 no viable alternative", "", FGW_CQL_DDL, FGW_CQL_CLASS_BUG,
     FGW_ERR_INTERNAL},
    {"7fffffff", "from the future", "", FGW_CQL_READ, FGW_CQL_CLASS_BUG, FGW_ERR_INTERNAL},
};

static void put_case(struct fgw_buf *body, const struct error_case *c)
{
    put_hex(body, c->code);
    put_text(body, c->message);
    put_hex(body, c->tail);
}

static void every_case(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fgw_buf body;
        fgw_buf_init(&body, 0);
        put_case(&body, &CASES[i]);
        struct fgw_cql_response *response = decode_ok(FGW_CQL_OP_ERROR, 0, &body);
        enum fgw_cql_class class =
            fgw_cql_classify(&response->error, CASES[i].kind, FGW_LIT("\xab\xcd"));
        if (class != CASES[i].class) {
            fail_msg("case %zu (%s %s): %s", i, CASES[i].code, CASES[i].message,
                     fgw_cql_class_name(class));
        }
        assert_int_equal(fgw_cql_class_err(class, CASES[i].kind, response->error.code),
                         CASES[i].err);
        fgw_cql_response_free(response);
        for (size_t len = 0; len < body.len; len++) {
            assert_int_equal(decode_bytes(FGW_CQL_OP_ERROR, 0, fgw_bytes(body.ptr, len), &response),
                             FGW_ERR_CORRUPT);
        }
        fgw_buf_deinit(&body);
    }
}

static struct fgw_cql_response *decode_case(const char *code, const char *message, const char *tail)
{
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    put_case(&body, &(struct error_case){.code = code, .message = message, .tail = tail});
    struct fgw_cql_response *response = decode_ok(FGW_CQL_OP_ERROR, 0, &body);
    fgw_buf_deinit(&body);
    return response;
}

static void fields(void **state)
{
    (void)state;
    struct fgw_cql_response *response =
        decode_case("00001100", "w", "0008 00000001 00000002 0003 434153");
    assert_int_equal(response->error.consistency, FGW_CQL_SERIAL);
    assert_int_equal(response->error.received, 1);
    assert_int_equal(response->error.required, 2);
    assert_int_equal(response->error.write_type, FGW_CQL_WRITE_CAS);
    fgw_cql_response_free(response);
    response = decode_case("00001000", "u", "0004 00000003 00000001");
    assert_int_equal(response->error.required, 3);
    assert_int_equal(response->error.received, 1);
    fgw_cql_response_free(response);
    response = decode_case("00001300", "r", "0004 00000001 00000002 00000003 01");
    assert_int_equal(response->error.failures, 3);
    assert_true(response->error.data_present);
    fgw_cql_response_free(response);
    response = decode_case("00002400", "e", "0002 6b73 0001 74");
    assert_bytes(response->error.keyspace, "ks");
    assert_bytes(response->error.name, "t");
    fgw_cql_response_free(response);
}

static void ql_codes(void **state)
{
    (void)state;
    static const struct {
        const char *message;
        int32_t code;
    } MESSAGES[] = {
        {"x (ql error -202)", -202},
        {"x (ql error -3)", -3},
        {"x (ql error -301).\n", -301},
        {"(ql error -202) quoted, then text", 0},
        {"(ql error -202) (ql error -300)", -300},
        {"x (ql error -)", 0},
        {"x (ql error -99999999999)", 0},
        {"ql error -202)", 0},
        {")", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof MESSAGES / sizeof MESSAGES[0]; i++) {
        struct fgw_cql_response *response = decode_case("00002200", MESSAGES[i].message, "");
        assert_int_equal(response->error.ql_code, MESSAGES[i].code);
        fgw_cql_response_free(response);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case),
        cmocka_unit_test(fields),
        cmocka_unit_test(ql_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
