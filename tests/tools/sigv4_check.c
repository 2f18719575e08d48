/* sigv4_check.c: answers for src/sigv4 on standard input and output, so that foreign signers can
 * be held against it (tests/integration/test_sigv4_botocore.py).
 *
 * One question a line, fields separated by one space, texts in hex:
 *   verify NOW_MS REGION SECRET METHOD PATH QUERY BODY [NAME:VALUE]...
 *   post NOW_MS REGION SECRET POLICY ALGORITHM CREDENTIAL DATE SIGNATURE
 * One answer a line: "OK <kind> <payload> <decoded body in hex> [<trailer name>:<value in hex>]..."
 * ("OK" alone for post), or "ERR <error> <canonical request in hex>".
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/encode.h"
#include "base/timefmt.h"
#include "sigv4/chunked.h"
#include "sigv4/post_policy.h"

enum { HEADERS_MAX = 100, FEED_STEP = 97 };

static _Noreturn void bad_question(void)
{
    (void)fputs("fgw-sigv4-check: malformed question\n", stderr);
    exit(2);
}

static struct fgw_bytes take(struct fgw_bytes *rest, uint8_t separator)
{
    struct fgw_bytes part;
    if (!fgw_bytes_split(rest, separator, &part)) {
        bad_question();
    }
    return part;
}

static struct fgw_bytes unhex(struct fgw_arena *arena, struct fgw_bytes text)
{
    uint8_t *bytes = fgw_arena_alloc(arena, text.len / 2);
    if (fgw_hex_decode(text, bytes) != FGW_OK) {
        bad_question();
    }
    return fgw_bytes(bytes, text.len / 2);
}

static struct fgw_bytes take_hex(struct fgw_arena *arena, struct fgw_bytes *rest)
{
    return unhex(arena, take(rest, ' '));
}

struct question {
    struct fgw_arena *arena;
    struct fgw_sig_policy policy;
    struct fgw_bytes secret;
    struct fgw_bytes body;
    struct fgw_sig_request request;
    struct fgw_sig_header headers[HEADERS_MAX];
};

static void take_policy(struct question *q, struct fgw_bytes *rest)
{
    uint64_t now_ms = 0;
    if (fgw_bytes_to_u64(take(rest, ' '), &now_ms) != FGW_OK) {
        bad_question();
    }
    q->policy =
        (struct fgw_sig_policy){.service = "s3", .now_ms = (int64_t)now_ms, .skew_ms = 900000};
    q->policy.region = take_hex(q->arena, rest);
    q->secret = take_hex(q->arena, rest);
}

static void take_request(struct question *q, struct fgw_bytes *rest)
{
    q->request.method = take_hex(q->arena, rest);
    q->request.raw_path = take_hex(q->arena, rest);
    q->request.raw_query = take_hex(q->arena, rest);
    q->body = take_hex(q->arena, rest);
    q->request.headers = q->headers;
    while (rest->ptr != NULL && q->request.header_count < HEADERS_MAX) {
        struct fgw_bytes value = take(rest, ' ');
        struct fgw_bytes name = take(&value, ':');
        q->headers[q->request.header_count++] =
            (struct fgw_sig_header){unhex(q->arena, name), unhex(q->arena, value)};
    }
}

static enum fgw_err decode(const struct question *q, const struct fgw_sig_auth *auth,
                           const struct fgw_sig_seed *seed, struct fgw_chunked *chunked,
                           struct fgw_buf *out)
{
    struct fgw_chunked_options options;
    struct fgw_bytes rest = q->body;
    enum fgw_err err = fgw_chunked_options_from(auth, seed, &options, NULL);
    if (err == FGW_OK) {
        err = fgw_chunked_init(chunked, &options, NULL);
    }
    while (err == FGW_OK && rest.len > 0) {
        size_t consumed = 0;
        struct fgw_bytes data = {0};
        err = fgw_chunked_feed(chunked, fgw_bytes_sub(rest, 0, FEED_STEP), &consumed, &data, NULL);
        if (err == FGW_OK) {
            err = fgw_buf_append(out, data);
            rest = fgw_bytes_sub(rest, consumed, SIZE_MAX);
        }
    }
    return err == FGW_OK ? fgw_chunked_finish(chunked, NULL) : err;
}

/* The body as the store would see it, into `out`. */
static enum fgw_err take_body(const struct question *q, const struct fgw_sig_auth *auth,
                              const struct fgw_sig_seed *seed, struct fgw_chunked *chunked,
                              struct fgw_buf *out)
{
    uint8_t hash[FGW_SHA256_SIZE];
    if (fgw_sig_payload_is_chunked(auth->payload)) {
        return decode(q, auth, seed, chunked, out);
    }
    fgw_sha256(q->body, hash);
    if (auth->payload == FGW_SIG_PAYLOAD_HASH &&
        memcmp(hash, auth->payload_sha256, sizeof hash) != 0) {
        return FGW_ERR_CONTENT_SHA256_MISMATCH;
    }
    return fgw_buf_append(out, q->body);
}

static void answer_verify(struct question *q)
{
    struct fgw_sig_auth auth;
    struct fgw_sig_seed seed;
    struct fgw_chunked chunked = {0};
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    enum fgw_err err = fgw_sig_parse(q->arena, &q->request, &auth, NULL);
    const char *canonical = "";
    if (err == FGW_OK && auth.kind != FGW_SIG_ANONYMOUS) {
        canonical = fgw_hex(q->arena, fgw_sig_canonical_request(&auth));
        err = fgw_sig_verify(&auth, &q->policy, q->secret, &seed, NULL);
    }
    if (err == FGW_OK) {
        err = take_body(q, &auth, &seed, &chunked, &body);
    }
    if (err != FGW_OK) {
        (void)printf("ERR %s %s\n", fgw_err_name(err), canonical);
    } else {
        (void)printf("OK %d %d %s", (int)auth.kind, (int)auth.payload,
                     fgw_hex(q->arena, fgw_buf_bytes(&body)));
        for (size_t i = 0; i < chunked.trailer_count; i++) {
            (void)printf(" %.*s:%s", FGW_FMT(chunked.trailers[i].name),
                         fgw_hex(q->arena, chunked.trailers[i].value));
        }
        (void)putchar('\n');
    }
    fgw_chunked_deinit(&chunked);
    fgw_buf_deinit(&body);
}

static void answer_post(struct question *q, struct fgw_bytes *rest)
{
    struct fgw_sig_post_form form;
    struct fgw_bytes access_key;
    form.policy = take_hex(q->arena, rest);
    form.algorithm = take_hex(q->arena, rest);
    form.credential = take_hex(q->arena, rest);
    form.date = take_hex(q->arena, rest);
    form.signature = take_hex(q->arena, rest);
    enum fgw_err err = fgw_sig_post_parse(&form, &q->policy, &access_key, NULL);
    if (err == FGW_OK) {
        err = fgw_sig_verify_post_policy(&form, &q->policy, q->secret, NULL);
    }
    (void)printf(err == FGW_OK ? "OK\n" : "ERR %s \n", fgw_err_name(err));
}

static void answer(struct fgw_bytes line)
{
    struct fgw_arena arena;
    struct question q = {.arena = &arena};
    fgw_arena_init(&arena, 0);
    struct fgw_bytes verb = take(&line, ' ');
    take_policy(&q, &line);
    if (fgw_bytes_eq_str(verb, "verify")) {
        take_request(&q, &line);
        answer_verify(&q);
    } else if (fgw_bytes_eq_str(verb, "post")) {
        answer_post(&q, &line);
    } else {
        bad_question();
    }
    (void)fflush(stdout);
    fgw_arena_deinit(&arena);
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    while ((len = getline(&line, &size, stdin)) > 0) {
        answer(fgw_bytes(line, (size_t)len - (line[len - 1] == '\n')));
    }
    free(line);
    return 0;
}
