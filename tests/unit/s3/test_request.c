/* test_request.c: targets, routing, conditions, and the headers of objects. */
#include "cmocka_all.h"

#include <stdio.h>

#include "base/timefmt.h"
#include "fake_request.h"
#include "s3/checksum.h"
#include "s3/conditions.h"
#include "s3/headers.h"
#include "s3/tags.h"

#define assert_bytes(view, text) assert_true(fgw_bytes_eq_str(view, text))

/* -- targets ---------------------------------------------------------------------------------- */

static void paths(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        enum fgw_s3_scope scope;
        const char *bucket;
        const char *key;
    } ROWS[] = {
        {"/", FGW_S3_SERVICE, "", ""},
        {"/bk", FGW_S3_BUCKET, "bk", ""},
        {"/bk/", FGW_S3_BUCKET, "bk", ""},
        {"/bk/k", FGW_S3_OBJECT, "bk", "k"},
        {"/bk//file.txt", FGW_S3_OBJECT, "bk", "/file.txt"},
        {"/bk/d//f/", FGW_S3_OBJECT, "bk", "d//f/"},
        {"/bk/a+b%2Bc%20d", FGW_S3_OBJECT, "bk", "a+b+c d"},
        {"/bk/a%2520", FGW_S3_OBJECT, "bk", "a%20"},
        {"/bk/../x", FGW_S3_OBJECT, "bk", "../x"},
        {"/bk/%3Facl", FGW_S3_OBJECT, "bk", "?acl"},
        {"/b%6B/x?versionId=1", FGW_S3_OBJECT, "bk", "x"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        struct fake_request fake;
        fake_init(&fake, FGW_HTTP_GET, ROWS[i].target);
        assert_int_equal(fgw_s3_request_parse(&fake.request), FGW_OK);
        assert_int_equal(fake.request.scope, ROWS[i].scope);
        assert_bytes(fake.request.bucket_name, ROWS[i].bucket);
        assert_bytes(fake.request.key, ROWS[i].key);
        fake_deinit(&fake);
    }
}

static void broken_paths(void **state)
{
    (void)state;
    static const char *const BAD[] = {"/bk/%",   "/bk/%2", "/bk/%zz",   "/%zz/k",
                                      "/bk/%ff", "//k",    "/bk?a=%zz", "/bk?%=1"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        struct fake_request fake;
        fake_init(&fake, FGW_HTTP_GET, BAD[i]);
        assert_int_equal(fgw_s3_request_parse(&fake.request), FGW_ERR_INVALID_URI);
        fake_deinit(&fake);
    }
    char target[1100] = "/bk/";
    memset(target + 4, 'k', 1025);
    struct fake_request fake;
    fake_init(&fake, FGW_HTTP_GET, target);
    assert_int_equal(fgw_s3_request_parse(&fake.request), FGW_ERR_KEY_TOO_LONG);
    fake_deinit(&fake);
    target[4 + 1024] = '\0';
    fake_init(&fake, FGW_HTTP_GET, target);
    assert_int_equal(fgw_s3_request_parse(&fake.request), FGW_OK);
    assert_int_equal(fake.request.key.len, 1024);
    fake_deinit(&fake);
}

static void virtual_hosts(void **state)
{
    (void)state;
    static const char *const DOMAINS[] = {"s3.example", "example"};
    struct fgw_bytes bucket;
    assert_true(fgw_s3_host_bucket(FGW_LIT("bk.S3.example:8078"), DOMAINS, 2, &bucket));
    assert_bytes(bucket, "bk");
    assert_true(fgw_s3_host_bucket(FGW_LIT("a.b.s3.example"), DOMAINS, 2, &bucket));
    assert_bytes(bucket, "a.b");
    assert_true(fgw_s3_host_bucket(FGW_LIT("bk.example"), DOMAINS, 2, &bucket));
    assert_bytes(bucket, "bk");
    assert_false(fgw_s3_host_bucket(FGW_LIT("s3.example:80"), DOMAINS, 2, &bucket));
    assert_false(fgw_s3_host_bucket(FGW_LIT("example"), DOMAINS, 2, &bucket));
    assert_false(fgw_s3_host_bucket(FGW_LIT("bkexample"), DOMAINS, 2, &bucket));
    assert_false(fgw_s3_host_bucket(FGW_LIT(".example"), DOMAINS, 2, &bucket));
    assert_false(fgw_s3_host_bucket(FGW_LIT("[::1]:8078"), DOMAINS, 2, &bucket));
    assert_false(fgw_s3_host_bucket(FGW_LIT(""), DOMAINS, 2, &bucket));

    struct fake_request fake;
    fake_init(&fake, FGW_HTTP_GET, "/x/bk/y");
    fake.s3.domains = DOMAINS;
    fake.s3.domain_count = 2;
    fake.http.host = FGW_LIT("BK.s3.example");
    assert_int_equal(fgw_s3_request_parse(&fake.request), FGW_OK);
    assert_bytes(fake.request.bucket_name, "bk");
    assert_bytes(fake.request.key, "x/bk/y");
    fake_deinit(&fake);
}

static void queries(void **state)
{
    (void)state;
    struct fake_request fake;
    fake_init(&fake, FGW_HTTP_GET, "/bk?prefix=a+b%2Bc&&acl&x=&prefix=second&q=a=b");
    assert_int_equal(fgw_s3_request_parse(&fake.request), FGW_OK);
    assert_int_equal(fake.request.query.count, 5);
    assert_bytes(fgw_s3_param(&fake.request, "prefix"), "a b+c");
    assert_true(fgw_s3_has_param(&fake.request, "acl"));
    assert_int_equal(fgw_s3_param(&fake.request, "acl").len, 0);
    assert_bytes(fgw_s3_param(&fake.request, "q"), "a=b");
    assert_null(fgw_s3_param(&fake.request, "nothing").ptr);
    fake_deinit(&fake);
}

static void numbers(void **state)
{
    (void)state;
    struct fake_request fake;
    unsigned value = 7;
    fake_init(&fake, FGW_HTTP_GET,
              "/bk?a=0&b=1000&c=1001&d=99999999999999999999999&e=-1&f=x&g=&h=1x");
    assert_int_equal(fgw_s3_request_parse(&fake.request), FGW_OK);
    static const struct {
        const char *name;
        unsigned value;
    } GOOD[] = {{"a", 0}, {"b", 1000}, {"c", 1000}, {"d", 1000}, {"g", 55}, {"none", 55}};
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        assert_int_equal(fgw_s3_param_number(&fake.request, GOOD[i].name, 1000, 55, &value),
                         FGW_OK);
        assert_int_equal(value, GOOD[i].value);
    }
    static const char *const BAD[] = {"e", "f", "h"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_int_equal(fgw_s3_param_number(&fake.request, BAD[i], 1000, 55, &value),
                         FGW_ERR_INVALID_ARGUMENT);
    }
    fake_deinit(&fake);
}

/* -- routing ---------------------------------------------------------------------------------- */

static enum fgw_err route(enum fgw_http_method method, const char *target, const char *header,
                          const char **out_name)
{
    struct fake_request fake;
    const struct fgw_s3_op *op = NULL;
    fake_init(&fake, method, target);
    if (header != NULL) {
        fake_header(&fake, header, "x");
    }
    enum fgw_err err = fgw_s3_request_parse(&fake.request);
    if (err == FGW_OK) {
        err = fgw_s3_route(&fake.request, &op);
    }
    *out_name = op == NULL ? "" : op->name;
    fake_deinit(&fake);
    return err;
}

static void routes(void **state)
{
    (void)state;
    static const struct {
        enum fgw_http_method method;
        const char *target;
        const char *header;
        const char *name;
    } ROWS[] = {
        {FGW_HTTP_GET, "/", NULL, "ListBuckets"},
        {FGW_HTTP_GET, "/bk", NULL, "ListObjects"},
        {FGW_HTTP_GET, "/bk?list-type=2&prefix=x", NULL, "ListObjectsV2"},
        {FGW_HTTP_GET, "/bk?foo", NULL, "ListObjects"},
        {FGW_HTTP_GET, "/bk?versions", NULL, "ListObjectVersions"},
        {FGW_HTTP_GET, "/bk/k?x-id=GetObject", NULL, "GetObject"},
        {FGW_HTTP_GET, "/bk/k?versionId=null&partNumber=1", NULL, "GetObject"},
        {FGW_HTTP_GET, "/bk/k?X-Amz-Signature=1&X-Amz-Security-Token=", NULL, "GetObject"},
        {FGW_HTTP_HEAD, "/bk/k", NULL, "HeadObject"},
        {FGW_HTTP_PUT, "/bk/k?x-id=PutObject", NULL, "PutObject"},
        {FGW_HTTP_PUT, "/bk/k?foo=bar", NULL, "PutObject"},
        {FGW_HTTP_PUT, "/bk/k", "X-Amz-Copy-Source", "CopyObject"},
        {FGW_HTTP_PUT, "/bk/k?partNumber=1&uploadId=u", NULL, "UploadPart"},
        {FGW_HTTP_PUT, "/bk/k?partNumber=1&uploadId=u", "x-amz-copy-source", "UploadPartCopy"},
        {FGW_HTTP_DELETE, "/bk/k?versionId=", NULL, "DeleteObject"},
        {FGW_HTTP_DELETE, "/bk/k?uploadId=u", NULL, "AbortMultipartUpload"},
        {FGW_HTTP_POST, "/bk?delete", NULL, "DeleteObjects"},
        {FGW_HTTP_POST, "/bk/k?uploads", NULL, "CreateMultipartUpload"},
        {FGW_HTTP_POST, "/bk", NULL, "PostObject"},
        {FGW_HTTP_GET, "/bk?policy=", NULL, "GetBucketPolicy"},
        {FGW_HTTP_PUT, "/bk?policy", NULL, "PutBucketPolicy"},
        {FGW_HTTP_GET, "/bk?inventory&id=1", NULL, "GetBucketInventoryConfiguration"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const char *name = NULL;
        assert_int_equal(route(ROWS[i].method, ROWS[i].target, ROWS[i].header, &name), FGW_OK);
        assert_string_equal(name, ROWS[i].name);
    }
}

static void routes_refused(void **state)
{
    (void)state;
    static const struct {
        enum fgw_http_method method;
        const char *target;
        enum fgw_err err;
    } ROWS[] = {
        {FGW_HTTP_PUT, "/bk?nonsense", FGW_ERR_NOT_IMPLEMENTED},
        {FGW_HTTP_PUT, "/bk?nonsense=", FGW_ERR_NOT_IMPLEMENTED},
        {FGW_HTTP_DELETE, "/bk?nonsense", FGW_ERR_NOT_IMPLEMENTED},
        {FGW_HTTP_DELETE, "/bk/k?Acl", FGW_ERR_NOT_IMPLEMENTED},
        {FGW_HTTP_POST, "/bk/k?nonsense", FGW_ERR_NOT_IMPLEMENTED},
        {FGW_HTTP_GET, "/bk?acl&tagging", FGW_ERR_NOT_IMPLEMENTED},
        {FGW_HTTP_PUT, "/bk?location", FGW_ERR_METHOD_NOT_ALLOWED},
        {FGW_HTTP_DELETE, "/bk?acl", FGW_ERR_METHOD_NOT_ALLOWED},
        {FGW_HTTP_POST, "/", FGW_ERR_METHOD_NOT_ALLOWED},
        {FGW_HTTP_POST, "/bk/k", FGW_ERR_METHOD_NOT_ALLOWED},
        {FGW_HTTP_GET, "/bk/k?policy", FGW_ERR_NOT_IMPLEMENTED},
        {FGW_HTTP_PUT, "/bk/k?lifecycle", FGW_ERR_NOT_IMPLEMENTED},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const char *name = NULL;
        assert_int_equal(route(ROWS[i].method, ROWS[i].target, NULL, &name), ROWS[i].err);
    }
}

/* Whatever is in the table can be reached, and its name is its own. */
static void every_row_is_reached(void **state)
{
    (void)state;
    for (size_t i = 0; i < FGW_S3_OP_COUNT; i++) {
        const struct fgw_s3_op *op = fgw_s3_op_at(i);
        char target[200];
        const char *name = NULL;
        static const char *const PATHS[] = {"/", "/bk", "/bk/k"};
        (void)snprintf(target, sizeof target, "%s%s%s%s", PATHS[op->scope],
                       op->sub[0] == '\0' ? "" : "?", op->sub,
                       strcmp(op->sub, "list-type") == 0 ? "=2" : "");
        assert_int_equal(
            route(op->method, target, op->header[0] == '\0' ? NULL : op->header, &name), FGW_OK);
        assert_string_equal(name, op->name);
    }
}

/* -- conditions ------------------------------------------------------------------------------- */

static const int64_t MTIME_MS = 1796056321678; /* Mon, 30 Nov 2026 ... */

static void expect_verdict(const char *header1, const char *value1, const char *header2,
                           const char *value2, enum fgw_s3_verdict wanted)
{
    struct fake_request fake;
    const char *condition = "";
    fake_init(&fake, FGW_HTTP_GET, "/bk/k");
    fake_header(&fake, header1, value1);
    if (header2 != NULL) {
        fake_header(&fake, header2, value2);
    }
    struct fgw_s3_read_conditions conditions = fgw_s3_read_conditions(&fake.http);
    assert_int_equal(fgw_s3_read_verdict(&conditions, FGW_LIT("abc"), MTIME_MS, &condition),
                     wanted);
    if (wanted != FGW_S3_PROCEED) {
        assert_true(condition[0] != '\0');
    }
    fake_deinit(&fake);
}

static void read_conditions(void **state)
{
    (void)state;
    char same[FGW_TIME_HTTP_SIZE];
    char before[FGW_TIME_HTTP_SIZE];
    char after[FGW_TIME_HTTP_SIZE];
    fgw_time_http(MTIME_MS, same);
    fgw_time_http(MTIME_MS - 1000, before);
    fgw_time_http(MTIME_MS + 1000, after);
    expect_verdict("If-Match", "\"abc\"", NULL, NULL, FGW_S3_PROCEED);
    expect_verdict("If-Match", "\"xyz\"", NULL, NULL, FGW_S3_FAILED);
    expect_verdict("If-None-Match", "abc", NULL, NULL, FGW_S3_NOT_MODIFIED);
    expect_verdict("If-None-Match", "*", NULL, NULL, FGW_S3_NOT_MODIFIED);
    expect_verdict("If-None-Match", "xyz", NULL, NULL, FGW_S3_PROCEED);
    expect_verdict("If-Modified-Since", same, NULL, NULL, FGW_S3_NOT_MODIFIED);
    expect_verdict("If-Modified-Since", after, NULL, NULL, FGW_S3_NOT_MODIFIED);
    expect_verdict("If-Modified-Since", before, NULL, NULL, FGW_S3_PROCEED);
    expect_verdict("If-Unmodified-Since", before, NULL, NULL, FGW_S3_FAILED);
    expect_verdict("If-Unmodified-Since", same, NULL, NULL, FGW_S3_PROCEED);
    expect_verdict("If-Modified-Since", "yesterday", NULL, NULL, FGW_S3_PROCEED);
    expect_verdict("If-Unmodified-Since", "", NULL, NULL, FGW_S3_PROCEED);
    /* precedence */
    expect_verdict("If-Match", "abc", "If-Unmodified-Since", before, FGW_S3_PROCEED);
    expect_verdict("If-None-Match", "xyz", "If-Modified-Since", same, FGW_S3_PROCEED);
    expect_verdict("If-Match", "abc", "If-Modified-Since", same, FGW_S3_NOT_MODIFIED);
    expect_verdict("If-Match", "xyz", "If-None-Match", "abc", FGW_S3_FAILED);
}

static void if_range(void **state)
{
    (void)state;
    struct fake_request fake;
    fake_init(&fake, FGW_HTTP_GET, "/bk/k");
    assert_true(fgw_s3_if_range_holds(&fake.http, FGW_LIT("abc"), MTIME_MS));
    fake_header(&fake, "If-Range", "\"abc\"");
    assert_true(fgw_s3_if_range_holds(&fake.http, FGW_LIT("abc"), MTIME_MS));
    assert_false(fgw_s3_if_range_holds(&fake.http, FGW_LIT("abd"), MTIME_MS));
    char same[FGW_TIME_HTTP_SIZE];
    fgw_time_http(MTIME_MS, same);
    fake.headers[0].value = fgw_bytes_str(same);
    assert_true(fgw_s3_if_range_holds(&fake.http, FGW_LIT("abc"), MTIME_MS));
    assert_false(fgw_s3_if_range_holds(&fake.http, FGW_LIT("abc"), MTIME_MS + 1000));
    fake_deinit(&fake);
}

static void write_conditions(void **state)
{
    (void)state;
    struct fake_request fake;
    struct fgw_conditions conditions;
    fake_init(&fake, FGW_HTTP_PUT, "/bk/k");
    assert_int_equal(fgw_s3_write_conditions(&fake.request, &conditions), FGW_OK);
    assert_false(conditions.if_match_any || conditions.if_none_match_any);
    fake_header(&fake, "If-None-Match", "*");
    fake_header(&fake, "If-Match", "\"abc\"");
    fake_header(&fake, "x-amz-if-match-size", "5");
    assert_int_equal(fgw_s3_write_conditions(&fake.request, &conditions), FGW_OK);
    assert_true(conditions.if_none_match_any);
    assert_bytes(conditions.if_match, "abc");
    assert_false(conditions.has_if_match_size); /* of DELETE only */
    fake.http.method = FGW_HTTP_DELETE;
    assert_int_equal(fgw_s3_write_conditions(&fake.request, &conditions), FGW_OK);
    assert_true(conditions.has_if_match_size && conditions.if_match_size == 5);
    fake_deinit(&fake);

    fake_init(&fake, FGW_HTTP_PUT, "/bk/k");
    fake_header(&fake, "If-None-Match", "\"a\", \"b\"");
    assert_int_equal(fgw_s3_write_conditions(&fake.request, &conditions), FGW_ERR_NOT_IMPLEMENTED);
    fake.headers[0].value = FGW_LIT("\"a\"");
    assert_int_equal(fgw_s3_write_conditions(&fake.request, &conditions), FGW_OK);
    assert_bytes(conditions.if_none_match, "a");
    fake.s3.strict_aws = true;
    assert_int_equal(fgw_s3_write_conditions(&fake.request, &conditions), FGW_ERR_NOT_IMPLEMENTED);
    fake_deinit(&fake);
}

/* -- headers of objects ----------------------------------------------------------------------- */

static struct fgw_bytes stored(const struct fgw_object *object, const char *name)
{
    for (size_t i = 0; i < object->header_count; i++) {
        if (fgw_bytes_eq_str(object->headers[i].name, name)) {
            return object->headers[i].value;
        }
    }
    return (struct fgw_bytes){NULL, 0};
}

static void collects_headers(void **state)
{
    (void)state;
    struct fake_request fake;
    struct fgw_object object = {0};
    fake_init(&fake, FGW_HTTP_PUT, "/bk/k");
    fake_header(&fake, "Content-Type", "text/plain");
    fake_header(&fake, "CONTENT-ENCODING", "gzip, aws-chunked");
    fake_header(&fake, "Expires", "some day");
    fake_header(&fake, "X-Amz-Meta-Color", "Blue");
    fake_header(&fake, "x-amz-meta-color", "green");
    fake_header(&fake, "x-amz-meta-empty", "");
    fake_header(&fake, "x-amz-storage-class", "STANDARD_IA");
    fake_header(&fake, "x-amz-acl", "public-read");
    fake_header(&fake, "x-amz-tagging", "a=1&b%20c=%C3%A9");
    fake_header(&fake, "x-other", "no");
    assert_int_equal(fgw_s3_collect_headers(&fake.request, &object), FGW_OK);
    assert_int_equal(object.header_count, 5);
    assert_bytes(stored(&object, "content-type"), "text/plain");
    assert_bytes(stored(&object, "content-encoding"), "gzip");
    assert_bytes(stored(&object, "expires"), "some day");
    assert_bytes(stored(&object, "x-amz-meta-color"), "Blue,green");
    assert_non_null(stored(&object, "x-amz-meta-empty").ptr);
    assert_bytes(object.storage_class, "STANDARD_IA");
    assert_int_equal(object.acl, FGW_ACL_PUBLIC_READ);
    assert_int_equal(object.tag_count, 2);
    assert_bytes(object.tags[1].name, "b c");
    assert_bytes(object.tags[1].value, "\xc3\xa9");
    fake_deinit(&fake);
}

static enum fgw_err collect_one(const char *name, const char *value)
{
    struct fake_request fake;
    struct fgw_object object = {0};
    fake_init(&fake, FGW_HTTP_PUT, "/bk/k");
    fake_header(&fake, name, value);
    enum fgw_err err = fgw_s3_collect_headers(&fake.request, &object);
    fake_deinit(&fake);
    return err;
}

static void refuses_headers(void **state)
{
    (void)state;
    char value[2100];
    memset(value, 'v', sizeof value);
    value[2048 - 1] = '\0';
    assert_int_equal(collect_one("x-amz-meta-n", value), FGW_OK); /* 1 + 2047 */
    value[2048 - 1] = 'v';
    value[2048] = '\0';
    assert_int_equal(collect_one("x-amz-meta-n", value), FGW_ERR_METADATA_TOO_LARGE);
    assert_int_equal(collect_one("x-amz-acl", "nonsense"), FGW_ERR_INVALID_ARGUMENT);
    assert_int_equal(collect_one("x-amz-grant-read", "id=1"), FGW_ERR_NOT_IMPLEMENTED);
    assert_int_equal(collect_one("x-amz-server-side-encryption", "AES256"),
                     FGW_ERR_NOT_IMPLEMENTED);
    assert_int_equal(collect_one("X-Amz-Object-Lock-Mode", "GOVERNANCE"), FGW_ERR_INVALID_REQUEST);
    assert_int_equal(collect_one("x-amz-storage-class", "FAST"), FGW_ERR_INVALID_STORAGE_CLASS);
    assert_int_equal(collect_one("x-amz-tagging", "a=1&a=2"), FGW_ERR_INVALID_TAG);
    assert_int_equal(collect_one("x-amz-tagging", "=2"), FGW_ERR_INVALID_TAG);
    assert_int_equal(collect_one("x-amz-tagging", "a=%z"), FGW_ERR_INVALID_ARGUMENT);
    assert_int_equal(collect_one("x-amz-tagging", "1=&2=&3=&4=&5=&6=&7=&8=&9=&10="), FGW_OK);
    assert_int_equal(collect_one("x-amz-tagging", "1=&2=&3=&4=&5=&6=&7=&8=&9=&10=&11="),
                     FGW_ERR_INVALID_TAG);
}

static void content_encodings(void **state)
{
    (void)state;
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    assert_null(fgw_s3_content_encoding(&arena, FGW_LIT("aws-chunked")).ptr);
    assert_null(fgw_s3_content_encoding(&arena, FGW_LIT("AWS-Chunked, aws-chunked")).ptr);
    assert_null(fgw_s3_content_encoding(&arena, FGW_LIT("")).ptr);
    assert_bytes(fgw_s3_content_encoding(&arena, FGW_LIT("aws-chunked,gzip")), "gzip");
    assert_bytes(fgw_s3_content_encoding(&arena, FGW_LIT("gzip")), "gzip");
    assert_bytes(fgw_s3_content_encoding(&arena, FGW_LIT("a,aws-chunked , b")), "a, b");
    fgw_arena_deinit(&arena);
}

static void encoded_words(void **state)
{
    (void)state;
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    assert_bytes(fgw_s3_header_text(&arena, FGW_LIT("plain")), "plain");
    assert_bytes(fgw_s3_header_text(&arena, FGW_LIT("=?UTF-8?Q?=C3=A9?=")), "=?UTF-8?Q?=C3=A9?=");
    assert_bytes(fgw_s3_header_text(&arena, FGW_LIT("\xc3\xa9\xe5\xad\x97")),
                 "=?UTF-8?B?w6nlrZc=?=");
    assert_bytes(fgw_s3_header_text(&arena, FGW_LIT("\xe9")), "=?ISO-8859-1?B?6Q==?=");
    char text[1 + 2 * 1000 + 1] = "x";
    for (int i = 0; i < 1000; i++) {
        memcpy(text + 1 + 2 * i, "\xc3\xa9", 2);
    }
    struct fgw_bytes words = fgw_s3_header_text(&arena, fgw_bytes(text, 1 + 2 * 1000));
    struct fgw_bytes rest = words;
    struct fgw_bytes word;
    while (fgw_bytes_split(&rest, ' ', &word)) {
        assert_true(word.len <= 75);
        assert_true(fgw_bytes_starts_with(word, FGW_LIT("=?UTF-8?B?")));
    }
    fgw_arena_deinit(&arena);
}

static enum fgw_err wish_of(const char *name1, const char *value1, const char *name2,
                            const char *value2, bool chunked, struct fgw_s3_checksum_wish *wish)
{
    struct fake_request fake;
    fake_init(&fake, FGW_HTTP_PUT, "/bk/k");
    fake.request.auth.payload =
        chunked ? FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER : FGW_SIG_PAYLOAD_UNSIGNED;
    fake_header(&fake, name1, value1);
    if (name2 != NULL) {
        fake_header(&fake, name2, value2);
    }
    enum fgw_err err = fgw_s3_checksum_wish(&fake.request, wish);
    fake_deinit(&fake);
    return err;
}

static void checksum_wishes(void **state)
{
    (void)state;
    struct fgw_s3_checksum_wish wish;
    assert_int_equal(wish_of("x-amz-checksum-crc32", "NhCmhg==", "x-amz-sdk-checksum-algorithm",
                             "CRC32", false, &wish),
                     FGW_OK);
    assert_true(wish.algorithm == FGW_CHECKSUM_CRC32 && wish.has_expected && !wish.in_trailer);
    assert_int_equal(wish_of("x-amz-trailer", "x-amz-checksum-sha256", NULL, NULL, true, &wish),
                     FGW_OK);
    assert_true(wish.algorithm == FGW_CHECKSUM_SHA256 && wish.in_trailer && !wish.has_expected);
    assert_int_equal(wish_of("x-amz-checksum-mode", "ENABLED", NULL, NULL, false, &wish), FGW_OK);
    assert_int_equal(wish.algorithm, FGW_CHECKSUM_NONE);
    assert_int_equal(wish_of("x-amz-trailer", "x-amz-checksum-crc32", NULL, NULL, false, &wish),
                     FGW_ERR_MALFORMED_TRAILER);
    assert_int_equal(wish_of("x-amz-checksum-sha512", "AA==", NULL, NULL, false, &wish),
                     FGW_ERR_INVALID_REQUEST);
    assert_int_equal(wish_of("x-amz-checksum-crc32", "AA==", NULL, NULL, false, &wish),
                     FGW_ERR_BAD_DIGEST);
    assert_int_equal(wish_of("x-amz-checksum-crc32", "NhCmhg==", "x-amz-checksum-crc32c",
                             "mnG7TA==", false, &wish),
                     FGW_ERR_INVALID_REQUEST);
    assert_int_equal(wish_of("x-amz-checksum-crc32", "NhCmhg==", "x-amz-sdk-checksum-algorithm",
                             "SHA256", false, &wish),
                     FGW_ERR_INVALID_REQUEST);
    assert_int_equal(wish_of("x-amz-sdk-checksum-algorithm", "CRC32", NULL, NULL, false, &wish),
                     FGW_ERR_INVALID_REQUEST);
    assert_int_equal(wish_of("x-amz-trailer", "x-amz-checksum-md5", NULL, NULL, true, &wish),
                     FGW_ERR_INVALID_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),
        cmocka_unit_test(broken_paths),
        cmocka_unit_test(virtual_hosts),
        cmocka_unit_test(queries),
        cmocka_unit_test(numbers),
        cmocka_unit_test(routes),
        cmocka_unit_test(routes_refused),
        cmocka_unit_test(every_row_is_reached),
        cmocka_unit_test(read_conditions),
        cmocka_unit_test(if_range),
        cmocka_unit_test(write_conditions),
        cmocka_unit_test(collects_headers),
        cmocka_unit_test(refuses_headers),
        cmocka_unit_test(content_encodings),
        cmocka_unit_test(encoded_words),
        cmocka_unit_test(checksum_wishes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
