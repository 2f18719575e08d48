/* test_chunked.c: aws-chunked bodies: AWS's examples, what clients send, and what must fail. Every
 * case runs whole, one byte at a time and in odd pieces. */
#include "sigv4_fixture.h"

#include "sigv4/chunked.h"

struct body {
    enum fgw_sig_payload payload;
    const struct fgw_sig_seed *seed;
    uint64_t decoded_length;
    const char *trailer_names;
    struct fgw_bytes wire;
};

/* Decodes in pieces of `step` bytes; the data goes to `out`. */
static enum fgw_err decode(const struct body *body, size_t step, struct fgw_buf *out,
                           struct fgw_chunked *chunked, struct fgw_error *error)
{
    const struct fgw_chunked_options options = {body->payload, body->seed, body->decoded_length,
                                                fgw_bytes_str(body->trailer_names)};
    enum fgw_err err = fgw_chunked_init(chunked, &options, error);
    struct fgw_bytes rest = body->wire;
    while (err == FGW_OK && rest.len > 0) {
        struct fgw_bytes piece = fgw_bytes_sub(rest, 0, step);
        /* a copy of its own: reading past the piece is seen by the sanitizer */
        uint8_t *copy = fgw_xmalloc(piece.len);
        memcpy(copy, piece.ptr, piece.len);
        size_t consumed = 0;
        struct fgw_bytes data = {0};
        err = fgw_chunked_feed(chunked, fgw_bytes(copy, piece.len), &consumed, &data, error);
        if (err == FGW_OK) {
            assert_true(consumed > 0 && consumed <= piece.len);
            assert_int_equal(fgw_buf_append(out, data), FGW_OK);
            rest = fgw_bytes_sub(rest, consumed, SIZE_MAX);
        }
        fgw_xfree(copy);
    }
    return err != FGW_OK ? err : fgw_chunked_finish(chunked, error);
}

/* All step sizes must agree. */
static enum fgw_err decode_all(const struct body *body, struct fgw_bytes expected)
{
    static const size_t STEPS[] = {SIZE_MAX, 1, 2, 3, 7, 64, 100, 8192, 65537};
    enum fgw_err first = FGW_OK;
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++) {
        struct fgw_chunked chunked;
        struct fgw_error error = {0};
        struct fgw_buf out;
        fgw_buf_init(&out, 0);
        enum fgw_err err = decode(body, STEPS[i], &out, &chunked, &error);
        if (i == 0) {
            first = err;
        }
        assert_int_equal(err, first);
        if (err == FGW_OK) {
            assert_true(fgw_bytes_eq(fgw_buf_bytes(&out), expected));
        } else {
            assert_int_equal(error.code, err);
        }
        assert_true(out.len <= body->decoded_length);
        fgw_buf_deinit(&out);
        fgw_chunked_deinit(&chunked);
    }
    return first;
}

/* -- AWS's examples ------------------------------------------------------------------------ */

enum { DOC_BYTES = 66560, DOC_CHUNK = 65536 };

static uint8_t *doc_data(void)
{
    uint8_t *data = fgw_xmalloc(DOC_BYTES);
    memset(data, 'a', DOC_BYTES);
    return data;
}

static void doc_request(struct fixture *f, bool trailer)
{
    fixture_init(f, "PUT", "/examplebucket/chunkObject.txt", "");
    add_header(f, "Host", "s3.amazonaws.com");
    add_header(f, "x-amz-date", "20130524T000000Z");
    add_header(f, "x-amz-storage-class", "REDUCED_REDUNDANCY");
    add_header(f, "Content-Encoding", "aws-chunked");
    add_header(f, "x-amz-decoded-content-length", "66560");
    if (!trailer) {
        add_header(f, "x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
        add_header(f, "Content-Length", "66824");
        add_authorization(f,
                          "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;"
                          "x-amz-decoded-content-length;x-amz-storage-class",
                          "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9");
        return;
    }
    add_header(f, "x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER");
    add_header(f, "x-amz-trailer", "x-amz-checksum-crc32c");
    add_authorization(f,
                      "content-encoding;host;x-amz-content-sha256;x-amz-date;"
                      "x-amz-decoded-content-length;x-amz-storage-class;x-amz-trailer",
                      "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e");
}

static void doc_body(struct fgw_buf *wire, const char *const signatures[3], const char *end)
{
    uint8_t *data = doc_data();
    (void)fgw_buf_appendf(wire, "10000;chunk-signature=%s\r\n", signatures[0]);
    (void)fgw_buf_append(wire, fgw_bytes(data, DOC_CHUNK));
    (void)fgw_buf_appendf(wire, "\r\n400;chunk-signature=%s\r\n", signatures[1]);
    (void)fgw_buf_append(wire, fgw_bytes(data, 1024));
    (void)fgw_buf_appendf(wire, "\r\n0;chunk-signature=%s\r\n%s", signatures[2], end);
    fgw_xfree(data);
}

static const char *const DOC_SIGNATURES[3] = {
    "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
    "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
    "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"};
static const char *const DOC_TRAILER_SIGNATURES[3] = {
    "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
    "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
    "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"};
#define DOC_TRAILER "x-amz-checksum-crc32c:sOO8/Q=="
#define DOC_TRAILER_SIGNATURE \
    "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"

static void documented_chunks(void **state)
{
    (void)state;
    struct fixture f;
    struct fgw_buf wire;
    struct fgw_chunked_options options;
    uint8_t *data = doc_data();
    doc_request(&f, false);
    assert_int_equal(check(&f), FGW_OK);
    assert_int_equal(fgw_chunked_options_from(&f.auth, &f.seed, &options, &f.error), FGW_OK);
    assert_int_equal(options.decoded_length, DOC_BYTES);
    fgw_buf_init(&wire, 0);
    doc_body(&wire, DOC_SIGNATURES, "\r\n");
    assert_int_equal(wire.len, 66824);
    struct body body = {options.payload, &f.seed, DOC_BYTES, "", fgw_buf_bytes(&wire)};
    assert_int_equal(decode_all(&body, fgw_bytes(data, DOC_BYTES)), FGW_OK);
    wire.ptr[100]++;
    assert_int_equal(decode_all(&body, fgw_bytes(data, DOC_BYTES)),
                     FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    fgw_buf_deinit(&wire);
    fgw_xfree(data);
    fixture_deinit(&f);
}

static void documented_trailer(void **state)
{
    (void)state;
    static const char *const ENDS[] = {
        DOC_TRAILER "\r\n" DOC_TRAILER_SIGNATURE "\r\n\r\n",
        DOC_TRAILER "\r\n" DOC_TRAILER_SIGNATURE "\r\n",
        DOC_TRAILER "\n\r\n" DOC_TRAILER_SIGNATURE "\r\n\r\n",  /* minio-go */
        "\r\n" DOC_TRAILER "\r\n" DOC_TRAILER_SIGNATURE "\r\n", /* the page, read literally */
        "X-Amz-Checksum-Crc32c: sOO8/Q==\r\n" DOC_TRAILER_SIGNATURE "\r\n\r\n",
    };
    uint8_t *data = doc_data();
    for (size_t i = 0; i < sizeof ENDS / sizeof ENDS[0]; i++) {
        struct fixture f;
        struct fgw_buf wire;
        doc_request(&f, true);
        assert_int_equal(check(&f), FGW_OK);
        fgw_buf_init(&wire, 0);
        doc_body(&wire, DOC_TRAILER_SIGNATURES, ENDS[i]);
        struct body body = {FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER, &f.seed, DOC_BYTES,
                            "x-amz-checksum-crc32c", fgw_buf_bytes(&wire)};
        assert_int_equal(decode_all(&body, fgw_bytes(data, DOC_BYTES)), FGW_OK);
        fgw_buf_deinit(&wire);
        fixture_deinit(&f);
    }
    fgw_xfree(data);
}

static void broken_signed_trailers(void **state)
{
    (void)state;
    static const struct {
        const char *end;
        enum fgw_err err;
    } CASES[] = {
        {"", FGW_ERR_MALFORMED_TRAILER},
        {"\r\n", FGW_ERR_MALFORMED_TRAILER},
        {DOC_TRAILER "\r\n\r\n", FGW_ERR_MALFORMED_TRAILER},
        {DOC_TRAILER_SIGNATURE "\r\n\r\n", FGW_ERR_MALFORMED_TRAILER},
        {DOC_TRAILER "\r\nx-amz-trailer-signature:00\r\n\r\n", FGW_ERR_MALFORMED_TRAILER},
        {DOC_TRAILER "\r\nx-amz-trailer-signature:" EMPTY_SHA "\r\n\r\n",
         FGW_ERR_SIGNATURE_DOES_NOT_MATCH},
        {"x-amz-checksum-crc32c:sOO8/A==\r\n" DOC_TRAILER_SIGNATURE "\r\n\r\n",
         FGW_ERR_SIGNATURE_DOES_NOT_MATCH},
        {DOC_TRAILER "\r\n" DOC_TRAILER_SIGNATURE "\r\n\r\nmore", FGW_ERR_MALFORMED_TRAILER},
        {"\r\n\r\n\r\n\r\n\r\n\r\n", FGW_ERR_MALFORMED_TRAILER},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fixture f;
        struct fgw_buf wire;
        doc_request(&f, true);
        assert_int_equal(check(&f), FGW_OK);
        fgw_buf_init(&wire, 0);
        doc_body(&wire, DOC_TRAILER_SIGNATURES, CASES[i].end);
        struct body body = {FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER, &f.seed, DOC_BYTES,
                            "x-amz-checksum-crc32c", fgw_buf_bytes(&wire)};
        assert_int_equal(decode_all(&body, fgw_bytes(NULL, 0)), CASES[i].err);
        fgw_buf_deinit(&wire);
        fixture_deinit(&f);
    }
}

static void each_chunk_signature_counts(void **state)
{
    (void)state;
    for (size_t bad = 0; bad < 3; bad++) {
        struct fixture f;
        struct fgw_buf wire;
        const char *signatures[3] = {DOC_SIGNATURES[0], DOC_SIGNATURES[1], DOC_SIGNATURES[2]};
        signatures[bad] = EMPTY_SHA;
        doc_request(&f, false);
        assert_int_equal(check(&f), FGW_OK);
        fgw_buf_init(&wire, 0);
        doc_body(&wire, signatures, "\r\n");
        struct body body = {FGW_SIG_PAYLOAD_STREAMING_SIGNED, &f.seed, DOC_BYTES, "",
                            fgw_buf_bytes(&wire)};
        assert_int_equal(decode_all(&body, fgw_bytes(NULL, 0)), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
        fgw_buf_deinit(&wire);
        fixture_deinit(&f);
    }
}

/* -- unsigned bodies ----------------------------------------------------------------------- */

struct unsigned_case {
    const char *wire;
    uint64_t decoded_length;
    const char *names;
    enum fgw_err err;
};

#define CRC "x-amz-checksum-crc32"

static void unsigned_bodies(void **state)
{
    (void)state;
    static const struct unsigned_case CASES[] = {
        {"5\r\nhello\r\n0\r\n" CRC ":NhCmhg==\r\n\r\n", 5, CRC, FGW_OK},
        {"5\r\nhello\r\n0\r\n" CRC ":NhCmhg==\n\r\n\r\n", 5, CRC, FGW_OK}, /* minio-go */
        {"5\r\nhello\r\n0\r\n" CRC ":NhCmhg==\r\n", 5, CRC, FGW_OK},
        {"1\r\nh\r\n2\r\nel\r\n2\r\nlo\r\n0\r\n" CRC ": NhCmhg== \r\n\r\n", 5, CRC, FGW_OK},
        {"5;chunk-signature=abc;x=y\r\nhello\r\n0;chunk-signature=d\r\n\r\n", 5, "", FGW_OK},
        {"0005\r\nhello\r\n00\r\n\r\n", 5, "", FGW_OK},
        {"5\r\nhello\r\n0\r\n", 5, "", FGW_OK},
        {"0\r\n\r\n", 0, "", FGW_OK},
        {"0\r\n" CRC ":AAAAAA==\r\n\r\n", 0, " X-Amz-Checksum-CRC32 ", FGW_OK},
        /* trailers */
        {"5\r\nhello\r\n0\r\n\r\n", 5, CRC, FGW_ERR_MALFORMED_TRAILER},
        {"5\r\nhello\r\n0\r\n", 5, CRC, FGW_ERR_MALFORMED_TRAILER},
        {"5\r\nhello\r\n0\r\n" CRC ":NhCmhg==\r\n\r\n", 5, "", FGW_ERR_MALFORMED_TRAILER},
        {"5\r\nhello\r\n0\r\n" CRC "\r\n\r\n", 5, CRC, FGW_ERR_MALFORMED_TRAILER},
        {"5\r\nhello\r\n0\r\n:NhCmhg==\r\n\r\n", 5, CRC, FGW_ERR_MALFORMED_TRAILER},
        {"5\r\nhello\r\n0\r\nx-amz-checksum-sha256:x\r\n\r\n", 5, CRC, FGW_ERR_MALFORMED_TRAILER},
        {"5\r\nhello\r\n0\r\n" CRC ":a\r\n" CRC ":a\r\n\r\n", 5, CRC, FGW_ERR_MALFORMED_TRAILER},
        {"5\r\nhello\r\n0\r\n" CRC ":NhCm", 5, CRC, FGW_ERR_MALFORMED_TRAILER},
        {"5\r\nhello\r\n0\r\nx-amz-trailer-signature:" EMPTY_SHA "\r\n\r\n", 5, "",
         FGW_ERR_MALFORMED_TRAILER},
        {"5\r\nhello\r\n0\r\n" CRC ":a\r\n\r\nGET / HTTP/1.1\r\n", 5, CRC,
         FGW_ERR_MALFORMED_TRAILER},
        {"0\r\n\r\n\r\n\r\n\r\n\r\n\r\n", 0, "", FGW_ERR_MALFORMED_TRAILER},
        {"0\r\n", 0, "x-amz-meta-a", FGW_ERR_INVALID_REQUEST},
        {"0\r\n", 0, CRC "," CRC "c," CRC "d," CRC "e," CRC "f", FGW_ERR_INVALID_REQUEST},
        /* framing */
        {"", 0, "", FGW_ERR_INCOMPLETE_BODY},
        {"5\r\nhell", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"5\r\nhello", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"5\r\nhello\r\n", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"5\r\nhello\r\n0", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"5\r\nhelloX\r\n0\r\n\r\n", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"5\r\nhello\rX0\r\n\r\n", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"5\nhello\r\n0\r\n\r\n", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"0x5\r\nhello\r\n0\r\n\r\n", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"-5\r\nhello\r\n0\r\n\r\n", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {" 5\r\nhello\r\n0\r\n\r\n", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"\r\n", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {";a=b\r\n", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"FFFFFFFFFFFFFFFF\r\nhello", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"10000000000000005\r\nhello", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"00000000000000000005\r\nhello", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"6\r\nhello!\r\n0\r\n\r\n", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", 5, "", FGW_ERR_INCOMPLETE_BODY},
        {"4\r\nhell\r\n0\r\n\r\n", 5, "", FGW_ERR_INCOMPLETE_BODY},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct body body = {FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER, NULL,
                            CASES[i].decoded_length, CASES[i].names, text_of(CASES[i].wire)};
        struct fgw_bytes expected = fgw_bytes_sub(FGW_LIT("hello"), 0, CASES[i].decoded_length);
        enum fgw_err err = decode_all(&body, expected);
        if (err != CASES[i].err) {
            fail_msg("case %zu: %s, want %s", i, fgw_err_name(err), fgw_err_name(CASES[i].err));
        }
    }
}

static void trailers_are_handed_out(void **state)
{
    (void)state;
    struct body body = {FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER, NULL, 5,
                        "x-amz-checksum-crc32, x-amz-checksum-sha1",
                        FGW_LIT("5\r\nhello\r\n0\r\nX-Amz-Checksum-SHA1:abc=\r\n"
                                "x-amz-checksum-crc32: NhCmhg==\r\n\r\n")};
    struct fgw_chunked chunked;
    struct fgw_error error = {0};
    struct fgw_buf out;
    struct fgw_bytes value;
    fgw_buf_init(&out, 0);
    assert_int_equal(decode(&body, 3, &out, &chunked, &error), FGW_OK);
    assert_int_equal(chunked.trailer_count, 2);
    assert_true(fgw_bytes_eq_str(chunked.trailers[0].name, "x-amz-checksum-sha1"));
    assert_true(fgw_chunked_trailer(&chunked, "x-amz-checksum-crc32", &value));
    assert_true(fgw_bytes_eq_str(value, "NhCmhg=="));
    assert_false(fgw_chunked_trailer(&chunked, "x-amz-checksum-md5", &value));
    fgw_chunked_deinit(&chunked);
    fgw_buf_deinit(&out);
}

static void long_lines_are_refused(void **state)
{
    (void)state;
    static char line[3000];
    memset(line, '0', sizeof line - 1);
    struct body body = {FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER, NULL, 5, CRC, text_of(line)};
    assert_int_equal(decode_all(&body, FGW_LIT("")), FGW_ERR_INCOMPLETE_BODY);
    memcpy(line, "0\r\n" CRC ":", 24);
    body.decoded_length = 0;
    assert_int_equal(decode_all(&body, FGW_LIT("")), FGW_ERR_MALFORMED_TRAILER);
}

static void failed_stays_failed(void **state)
{
    (void)state;
    struct fgw_chunked chunked;
    struct fgw_chunked_options options = {.payload = FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER,
                                          .decoded_length = 5};
    size_t consumed = 99;
    struct fgw_bytes data = FGW_LIT("untouched");
    assert_int_equal(fgw_chunked_init(&chunked, &options, NULL), FGW_OK);
    assert_int_equal(fgw_chunked_feed(&chunked, FGW_LIT("x\r\n"), &consumed, &data, NULL),
                     FGW_ERR_INCOMPLETE_BODY);
    assert_int_equal(consumed, 99);
    assert_true(fgw_bytes_eq_str(data, "untouched"));
    assert_int_equal(fgw_chunked_feed(&chunked, FGW_LIT("5\r\n"), &consumed, &data, NULL),
                     FGW_ERR_INCOMPLETE_BODY);
    assert_int_equal(fgw_chunked_finish(&chunked, NULL), FGW_ERR_INCOMPLETE_BODY);
    fgw_chunked_deinit(&chunked);
}

/* -- encoder and decoder ------------------------------------------------------------------- */

static void encoded_bodies_decode(void **state)
{
    (void)state;
    static const enum fgw_sig_payload MODES[] = {FGW_SIG_PAYLOAD_STREAMING_SIGNED,
                                                 FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER,
                                                 FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER};
    static const size_t SIZES[] = {0, 1, 8192, 8193, 20000};
    const struct fgw_sig_header trailers[] = {{FGW_LIT("x-amz-checksum-sha1"), FGW_LIT("v1")},
                                              {FGW_LIT("x-amz-checksum-crc32"), FGW_LIT("v2")}};
    uint8_t *data = doc_data();
    for (size_t i = 0; i < 15; i++) {
        enum fgw_sig_payload mode = MODES[i % 3];
        size_t size = SIZES[i / 3];
        struct fixture f;
        struct fgw_chunked_encoder encoder;
        struct fgw_buf wire;
        bool trailer = mode != FGW_SIG_PAYLOAD_STREAMING_SIGNED;
        signed_get(&f);
        fgw_buf_init(&wire, 0);
        fgw_chunked_encoder_init(&encoder, mode, &f.seed);
        for (size_t done = 0; done < size; done += 8192) {
            struct fgw_bytes part = fgw_bytes_sub(fgw_bytes(data, size), done, 8192);
            assert_int_equal(fgw_chunked_encode(&encoder, part, &wire), FGW_OK);
        }
        assert_int_equal(fgw_chunked_encode_end(&encoder, trailers, trailer ? 2 : 0, &wire),
                         FGW_OK);
        struct body body = {mode, &f.seed, size, "x-amz-checksum-crc32,x-amz-checksum-sha1",
                            fgw_buf_bytes(&wire)};
        assert_int_equal(decode_all(&body, fgw_bytes(data, size)), FGW_OK);
        fgw_buf_deinit(&wire);
        fixture_deinit(&f);
    }
    fgw_xfree(data);
}

/* Signed in the order of the names, sent in another. */
static void sorted_trailers_verify(void **state)
{
    (void)state;
    static const char FIRST[] = "x-amz-checksum-crc32:v2\r\n";
    static const char SECOND[] = "x-amz-checksum-sha1:v1\r\n";
    const struct fgw_sig_header trailers[] = {{FGW_LIT("x-amz-checksum-crc32"), FGW_LIT("v2")},
                                              {FGW_LIT("x-amz-checksum-sha1"), FGW_LIT("v1")}};
    struct fixture f;
    struct fgw_chunked_encoder encoder;
    struct fgw_buf wire;
    signed_get(&f);
    fgw_buf_init(&wire, 0);
    fgw_chunked_encoder_init(&encoder, FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER, &f.seed);
    assert_int_equal(fgw_chunked_encode_end(&encoder, trailers, 2, &wire), FGW_OK);
    size_t at = fgw_bytes_find(fgw_buf_bytes(&wire), text_of(FIRST), 0);
    assert_true(at != SIZE_MAX);
    memcpy(wire.ptr + at, SECOND, strlen(SECOND));
    memcpy(wire.ptr + at + strlen(SECOND), FIRST, strlen(FIRST));
    struct body body = {FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER, &f.seed, 0,
                        "x-amz-checksum-crc32,x-amz-checksum-sha1", fgw_buf_bytes(&wire)};
    assert_int_equal(decode_all(&body, FGW_LIT("")), FGW_OK);
    wire.ptr[at + strlen(SECOND) - 3]++;
    assert_int_equal(decode_all(&body, FGW_LIT("")), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    fgw_buf_deinit(&wire);
    fixture_deinit(&f);
}

static void small_signed_chunks_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t sizes[3];
        enum fgw_err err;
    } CASES[] = {{{100, 100, 0}, FGW_ERR_INVALID_CHUNK_SIZE},
                 {{8192, 8191, 1}, FGW_ERR_INVALID_CHUNK_SIZE},
                 {{8192, 8192, 1}, FGW_OK},
                 {{100, 0, 0}, FGW_OK}};
    uint8_t *data = doc_data();
    for (size_t i = 0; i < 4; i++) {
        struct fixture f;
        struct fgw_chunked_encoder encoder;
        struct fgw_buf wire;
        size_t total = 0;
        signed_get(&f);
        fgw_buf_init(&wire, 0);
        fgw_chunked_encoder_init(&encoder, FGW_SIG_PAYLOAD_STREAMING_SIGNED, &f.seed);
        for (size_t j = 0; j < 3 && CASES[i].sizes[j] > 0; j++) {
            total += CASES[i].sizes[j];
            assert_int_equal(
                fgw_chunked_encode(&encoder, fgw_bytes(data, CASES[i].sizes[j]), &wire), FGW_OK);
        }
        assert_int_equal(fgw_chunked_encode_end(&encoder, NULL, 0, &wire), FGW_OK);
        struct body body = {FGW_SIG_PAYLOAD_STREAMING_SIGNED, &f.seed, total, "",
                            fgw_buf_bytes(&wire)};
        assert_int_equal(decode_all(&body, fgw_bytes(data, total)), CASES[i].err);
        fgw_buf_deinit(&wire);
        fixture_deinit(&f);
    }
    fgw_xfree(data);
}

static void signed_size_lines_are_strict(void **state)
{
    (void)state;
    static const char *const WIRES[] = {
        "5\r\nhello\r\n",
        "5;\r\nhello\r\n",
        "5;chunk-signature=\r\nhello\r\n",
        "5;chunk-signature=abcd\r\nhello\r\n",
        "5;signature=" EMPTY_SHA "\r\nhello\r\n",
        "5;chunk-signature=" EMPTY_SHA "0\r\nhello\r\n",
        "5;chunk-signature=" EMPTY_SHA ";x=y\r\nhello\r\n",
        "5 ;chunk-signature=" EMPTY_SHA "\r\nhello\r\n",
    };
    for (size_t i = 0; i < sizeof WIRES / sizeof WIRES[0]; i++) {
        struct fixture f;
        signed_get(&f);
        struct body body = {FGW_SIG_PAYLOAD_STREAMING_SIGNED, &f.seed, 5, "", text_of(WIRES[i])};
        assert_int_equal(decode_all(&body, FGW_LIT("")), FGW_ERR_INCOMPLETE_BODY);
        fixture_deinit(&f);
    }
}

static void decoded_length_is_required(void **state)
{
    (void)state;
    static const char *const BAD[] = {"", "-1", "5x", "99999999999999999999999"};
    struct fgw_chunked_options options;
    struct fixture f;
    fixture_init(&f, "PUT", "/bk/k", "");
    add_header(&f, "x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER");
    assert_int_equal(parse(&f), FGW_OK);
    assert_int_equal(fgw_chunked_options_from(&f.auth, NULL, &options, &f.error),
                     FGW_ERR_MISSING_CONTENT_LENGTH);
    add_header(&f, "X-Amz-Decoded-Content-Length", "");
    for (size_t i = 0; i < 4; i++) {
        header_of(&f, "x-amz-decoded-content-length")->value = text_of(BAD[i]);
        assert_int_equal(fgw_chunked_options_from(&f.auth, NULL, &options, &f.error),
                         FGW_ERR_INVALID_ARGUMENT);
    }
    header_of(&f, "x-amz-decoded-content-length")->value = FGW_LIT(" 5 ");
    assert_int_equal(fgw_chunked_options_from(&f.auth, NULL, &options, &f.error), FGW_OK);
    assert_int_equal(options.decoded_length, 5);
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documented_chunks),
        cmocka_unit_test(documented_trailer),
        cmocka_unit_test(broken_signed_trailers),
        cmocka_unit_test(each_chunk_signature_counts),
        cmocka_unit_test(unsigned_bodies),
        cmocka_unit_test(trailers_are_handed_out),
        cmocka_unit_test(long_lines_are_refused),
        cmocka_unit_test(failed_stays_failed),
        cmocka_unit_test(encoded_bodies_decode),
        cmocka_unit_test(sorted_trailers_verify),
        cmocka_unit_test(small_signed_chunks_are_refused),
        cmocka_unit_test(signed_size_lines_are_strict),
        cmocka_unit_test(decoded_length_is_required),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
