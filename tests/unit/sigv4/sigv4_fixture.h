/* sigv4_fixture.h: a request under construction and the credentials of AWS's documentation. One
 * fixture a test; everything lives in its arena. */
#ifndef FGW_TESTS_SIGV4_FIXTURE_H
#define FGW_TESTS_SIGV4_FIXTURE_H

#include "cmocka_all.h"

#include "base/encode.h"
#include "base/timefmt.h"
#include "sigv4/auth.h"
#include "sigv4/sign.h"

#define DOC_KEY "AKIAIOSFODNN7EXAMPLE"
#define DOC_SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define DOC_SCOPE "20130524/us-east-1/s3/aws4_request"
#define EMPTY_SHA "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

enum { FIXTURE_HEADERS = 32 };

struct fixture {
    struct fgw_arena arena;
    struct fgw_error error;
    struct fgw_sig_header headers[FIXTURE_HEADERS];
    struct fgw_sig_request request;
    struct fgw_sig_policy policy;
    struct fgw_sig_auth auth;
    struct fgw_sig_seed seed;
};

static inline struct fgw_bytes text_of(const char *text)
{
    return fgw_bytes_str(text);
}

static inline void fixture_init(struct fixture *f, const char *method, const char *path,
                                const char *query)
{
    memset(f, 0, sizeof *f);
    fgw_arena_init(&f->arena, 0);
    f->request =
        (struct fgw_sig_request){text_of(method), text_of(path), text_of(query), f->headers, 0};
    f->policy =
        (struct fgw_sig_policy){.region = FGW_LIT("us-east-1"), .service = "s3", .skew_ms = 900000};
    assert_int_equal(fgw_time_parse_basic(FGW_LIT("20130524T000000Z"), &f->policy.now_ms), FGW_OK);
}

static inline void fixture_deinit(struct fixture *f)
{
    fgw_arena_deinit(&f->arena);
}

static inline void add_header_bytes(struct fixture *f, const char *name, struct fgw_bytes value)
{
    assert_true(f->request.header_count < FIXTURE_HEADERS);
    f->headers[f->request.header_count++] = (struct fgw_sig_header){text_of(name), value};
}

static inline void add_header(struct fixture *f, const char *name, const char *value)
{
    add_header_bytes(f, name, text_of(value));
}

static inline void add_authorization(struct fixture *f, const char *signed_headers,
                                     const char *signature)
{
    add_header(f, "Authorization",
               fgw_arena_printf(&f->arena,
                                "AWS4-HMAC-SHA256 Credential=" DOC_KEY "/" DOC_SCOPE
                                ",SignedHeaders=%s,Signature=%s",
                                signed_headers, signature));
}

static inline enum fgw_err parse(struct fixture *f)
{
    fgw_error_init(&f->error);
    return fgw_sig_parse(&f->arena, &f->request, &f->auth, &f->error);
}

/* Parse and verify with the documentation's secret. */
static inline enum fgw_err check(struct fixture *f)
{
    enum fgw_err err = parse(f);
    return err != FGW_OK
               ? err
               : fgw_sig_verify(&f->auth, &f->policy, FGW_LIT(DOC_SECRET), &f->seed, &f->error);
}

static inline struct fgw_sig_signer doc_signer(const struct fixture *f)
{
    return (struct fgw_sig_signer){.access_key = FGW_LIT(DOC_KEY),
                                   .secret = FGW_LIT(DOC_SECRET),
                                   .region = f->policy.region,
                                   .service = FGW_LIT("s3"),
                                   .now_ms = f->policy.now_ms};
}

/* Signs what is there with our signer and adds the three headers. */
static inline void sign_request(struct fixture *f, const char *payload)
{
    struct fgw_sig_signed out;
    struct fgw_sig_signer signer = doc_signer(f);
    assert_int_equal(fgw_sig_sign(&f->arena, &signer, &f->request, text_of(payload), &out), FGW_OK);
    add_header_bytes(f, "x-amz-date", out.amz_date);
    add_header_bytes(f, "x-amz-content-sha256", out.content_sha256);
    add_header_bytes(f, "authorization", out.authorization);
    f->seed = out.seed;
}

/* A signed GET that verifies: what the error tests then break. */
static inline void signed_get(struct fixture *f)
{
    fixture_init(f, "GET", "/bk/k", "");
    add_header(f, "Host", "store.example:8078");
    sign_request(f, EMPTY_SHA);
}

static inline void presign_request(struct fixture *f, int64_t expires_s)
{
    struct fgw_sig_signer signer = doc_signer(f);
    assert_int_equal(
        fgw_sig_presign(&f->arena, &signer, &f->request, expires_s, &f->request.raw_query), FGW_OK);
}

static inline void presigned_get(struct fixture *f, int64_t expires_s)
{
    fixture_init(f, "GET", "/bk/k", "");
    add_header(f, "Host", "store.example:8078");
    presign_request(f, expires_s);
}

static inline struct fgw_sig_header *header_of(struct fixture *f, const char *name)
{
    for (size_t i = 0; i < f->request.header_count; i++) {
        if (fgw_bytes_ieq_str(f->headers[i].name, name)) {
            return &f->headers[i];
        }
    }
    fail_msg("no header %s", name);
    return NULL;
}

static inline void drop_header(struct fixture *f, const char *name)
{
    struct fgw_sig_header *header = header_of(f, name);
    *header = f->headers[--f->request.header_count];
}

/* Copy of `text` with the first `old` replaced; `old` must be there. */
static inline struct fgw_bytes replace(struct fixture *f, struct fgw_bytes text, const char *old,
                                       const char *new)
{
    size_t at = fgw_bytes_find(text, text_of(old), 0);
    assert_true(at != SIZE_MAX);
    return text_of(fgw_arena_printf(&f->arena, "%.*s%s%.*s", (int)at, (const char *)text.ptr, new,
                                    FGW_FMT(fgw_bytes_sub(text, at + strlen(old), SIZE_MAX))));
}

static inline void edit_header(struct fixture *f, const char *name, const char *old,
                               const char *new)
{
    struct fgw_sig_header *header = header_of(f, name);
    header->value = replace(f, header->value, old, new);
}

static inline void edit_query(struct fixture *f, const char *old, const char *new)
{
    f->request.raw_query = replace(f, f->request.raw_query, old, new);
}

static inline const char *extra_of(const struct fixture *f, const char *name)
{
    for (unsigned i = 0; i < f->error.extra_count; i++) {
        if (strcmp(f->error.extra[i].name, name) == 0) {
            return f->error.extra[i].value;
        }
    }
    return "";
}

#endif
