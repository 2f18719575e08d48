/* fuzz_sigv4.c: a request as text lines (method, path, query, then "name:value" headers) through
 * parse and verify. What our own signer signs must verify, whatever path, query and headers are. */
#include "base/check.h"
#include "sigv4/sign.h"

enum { HEADERS_MAX = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void verify(struct fgw_arena *arena, const struct fgw_sig_request *request, bool must_hold)
{
    struct fgw_sig_auth auth;
    struct fgw_sig_seed seed;
    struct fgw_error error = {0};
    struct fgw_sig_policy policy = {.region = FGW_LIT("us-east-1"),
                                    .service = "s3",
                                    .now_ms = 1369353600000,
                                    .skew_ms = 900000};
    enum fgw_err err = fgw_sig_parse(arena, request, &auth, &error);
    if (err == FGW_OK && auth.kind != FGW_SIG_ANONYMOUS) {
        (void)fgw_sig_canonical_request(&auth);
        err = fgw_sig_verify(&auth, &policy, FGW_LIT("secret"), &seed, &error);
    }
    FGW_CHECK(err == FGW_OK || error.code == err);
    FGW_CHECK(!must_hold || err == FGW_OK);
}

/* Names our signer may not be given, or that change what is signed. */
static bool reserved(struct fgw_bytes name)
{
    static const char *const NAMES[] = {"host", "authorization", "x-amz-date",
                                        "x-amz-content-sha256"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (fgw_bytes_ieq_str(name, NAMES[i])) {
            return true;
        }
    }
    /* no token characters (RFC 9110 section 5.6.2): the HTTP parser refuses them */
    static const char OTHERS[] = {';', ',', ' ', '\t', '\0'};
    for (size_t i = 0; i < sizeof OTHERS; i++) {
        if (fgw_bytes_find_byte(name, (uint8_t)OTHERS[i]) != SIZE_MAX) {
            return true;
        }
    }
    return name.len == 0;
}

static bool has_authentication(struct fgw_bytes query)
{
    return fgw_bytes_find_byte(query, '%') != SIZE_MAX ||
           fgw_bytes_find(query, FGW_LIT("X-Amz-"), 0) != SIZE_MAX ||
           fgw_bytes_find(query, FGW_LIT("AWSAccessKeyId"), 0) != SIZE_MAX;
}

static void sign_and_verify(struct fgw_arena *arena, const struct fgw_sig_request *parsed)
{
    struct fgw_sig_header headers[HEADERS_MAX + 4];
    struct fgw_sig_request request = *parsed;
    const struct fgw_sig_signer signer = {FGW_LIT("AKIA"), FGW_LIT("secret"), FGW_LIT("us-east-1"),
                                          FGW_LIT("s3"),   1369353600000,     NULL};
    struct fgw_sig_signed out;
    request.headers = headers;
    request.header_count = 0;
    headers[request.header_count++] = (struct fgw_sig_header){FGW_LIT("Host"), FGW_LIT("h")};
    for (size_t i = 0; i < parsed->header_count; i++) {
        if (!reserved(parsed->headers[i].name)) {
            headers[request.header_count++] = parsed->headers[i];
        }
    }
    if (fgw_sig_sign(arena, &signer, &request, FGW_LIT("UNSIGNED-PAYLOAD"), &out) != FGW_OK) {
        return;
    }
    headers[request.header_count++] = (struct fgw_sig_header){FGW_LIT("x-amz-date"), out.amz_date};
    headers[request.header_count++] =
        (struct fgw_sig_header){FGW_LIT("x-amz-content-sha256"), out.content_sha256};
    headers[request.header_count++] =
        (struct fgw_sig_header){FGW_LIT("authorization"), out.authorization};
    verify(arena, &request, !has_authentication(parsed->raw_query));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fgw_arena arena;
    struct fgw_sig_header headers[HEADERS_MAX];
    struct fgw_sig_request request = {.headers = headers};
    struct fgw_bytes rest = fgw_bytes(data, size);
    struct fgw_bytes line;
    (void)fgw_bytes_split(&rest, '\n', &request.method);
    (void)fgw_bytes_split(&rest, '\n', &request.raw_path);
    (void)fgw_bytes_split(&rest, '\n', &request.raw_query);
    while (request.header_count < HEADERS_MAX && fgw_bytes_split(&rest, '\n', &line)) {
        struct fgw_sig_header *header = &headers[request.header_count];
        header->value = line;
        if (fgw_bytes_split(&header->value, ':', &header->name)) {
            request.header_count++;
        }
    }
    fgw_arena_init(&arena, 0);
    verify(&arena, &request, false);
    sign_and_verify(&arena, &request);
    fgw_arena_deinit(&arena);
    return 0;
}
