/* body.h: the one way a request body comes in: exchange -> aws-chunked decoder when the payload is
 * a streaming one -> digests -> sink. Every byte is read once; hashing yields every 64 KiB.
 *
 * plan reads only the head, so that everything wrong with it is answered before "100 Continue".
 * What the sink was given must not be committed until run has returned FGW_OK: sizes, signatures
 * and digests are known only then. Lives in the arena of one request.
 * Source: spec/s3-wire.md 5.6, 5.11 to 5.18, 5.64. */
#ifndef FGW_S3_BODY_H
#define FGW_S3_BODY_H

#include "base/hash_pair.h"
#include "s3/checksum.h"
#include "s3/request.h"
#include "sigv4/chunked.h"

/* Takes bytes in order; called in the request's fiber, may suspend. */
typedef enum fgw_err fgw_s3_sink(void *context, struct fgw_bytes bytes);
/* Where the sink would like to find the next bytes: given to it there, they need not be copied. */
typedef size_t fgw_s3_room(void *context, uint8_t **out_room);

struct fgw_s3_body_options {
    uint64_t max_bytes;
    enum fgw_err too_large; /* error of a longer one: ENTITY_TOO_LARGE, MALFORMED_XML */
    bool need_length;       /* MISSING_CONTENT_LENGTH when the request tells no length at all */
    bool need_integrity;    /* INVALID_REQUEST without Content-MD5 or a checksum */
    bool want_md5;          /* compute the MD5 also without Content-MD5 */
    enum fgw_checksum want_checksum; /* computed when the request asks for none */
    bool checksum_of_object;         /* x-amz-checksum-* speaks of an object, not of this body */
};

struct fgw_s3_body {
    /* after plan */
    struct fgw_s3_request *request;
    struct fgw_s3_body_options options;
    uint64_t length; /* of the body proper; UINT64_MAX when unknown */
    struct fgw_s3_checksum_wish wish;
    bool has_content_md5;
    uint8_t content_md5[FGW_MD5_SIZE];
    /* after run */
    uint64_t size;
    uint8_t md5[FGW_MD5_SIZE];          /* with want_md5 or Content-MD5 */
    struct fgw_checksum_value checksum; /* algorithm NONE when none was asked for */
    /* between plan and run: the sink computes the MD5 with this; else NULL */
    struct fgw_md5 *md5_of_sink;
    fgw_s3_room *room_of_sink; /* or NULL */
    /* private */
    struct fgw_chunked *chunked;
    struct fgw_digest md5_digest;
    struct fgw_digest sha256_digest;
    struct fgw_s3_checksummer summer;
    uint8_t sha256[FGW_SHA256_SIZE];
    bool digests_begun;
    bool digests_done;
    size_t since_yield_bytes;
};

/* Errors: MISSING_CONTENT_LENGTH, options.too_large, INVALID_DIGEST, INVALID_REQUEST, those of
 * fgw_s3_checksum_wish and fgw_chunked_options_from. On FGW_OK deinit is needed. */
enum fgw_err fgw_s3_body_plan(struct fgw_s3_request *request,
                              const struct fgw_s3_body_options *options,
                              struct fgw_s3_body **out_body) FGW_MUST_CHECK;
/* Reads to the end. Errors: those of fgw_http_body_read, fgw_chunked_feed and the sink;
 * options.too_large, CONTENT_SHA256_MISMATCH, BAD_DIGEST, MALFORMED_TRAILER. */
enum fgw_err fgw_s3_body_run(struct fgw_s3_body *body, fgw_s3_sink *sink,
                             void *sink_context) FGW_MUST_CHECK;
/* Takes NULL. */
void fgw_s3_body_deinit(struct fgw_s3_body *body);

/* plan and run into a buffer: for XML bodies, at most max_bytes (else MALFORMED_XML). */
enum fgw_err fgw_s3_body_collect(struct fgw_s3_request *request, size_t max_bytes,
                                 bool need_integrity, struct fgw_buf *out) FGW_MUST_CHECK;
enum fgw_err fgw_s3_body_collect_with(struct fgw_s3_request *request,
                                      const struct fgw_s3_body_options *options,
                                      struct fgw_buf *out) FGW_MUST_CHECK;

#endif
