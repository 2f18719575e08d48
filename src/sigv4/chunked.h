/* chunked.h: decoder and encoder of aws-chunked bodies, with or without chunk signatures and
 * trailers. This is the framing inside the body (Content-Encoding: aws-chunked); HTTP's own chunked
 * transfer coding is gone when these bytes arrive.
 *
 *     size;chunk-signature=<64 hex> CRLF data CRLF ... 0;chunk-signature=<64 hex> CRLF
 *     [name:value CRLF ... x-amz-trailer-signature:<64 hex> CRLF] CRLF
 *
 * The decoder is incremental and copies no data: fgw_chunked_feed hands out views into its input,
 * before the signature of their chunk is known. The caller must not commit what it was handed until
 * fgw_chunked_finish has returned FGW_OK. After any error the decoder answers nothing else.
 *
 * Lengths are bounded: size line 256 bytes, size 16 hex digits and never beyond what the decoded
 * length leaves, 4 trailers in lines of up to 512 bytes.
 *
 * Strict where AWS is, lenient where clients need it:
 * - Signed modes take "chunk-signature" as the only extension, and refuse a chunk under 8192 bytes
 *   that is not the last (InvalidChunkSizeError). The unsigned mode takes any chunk size (SDKs wrap
 *   streams that return a few bytes a read) and ignores extensions (spec/s3-wire.md 5.13; public
 *   bug reports B13, B18).
 * - A trailer line may end in a bare LF, and blank lines may stand before the trailer signature:
 *   minio-go writes both. AWS's example of the trailer has no final blank line: the end of the body
 *   stands for it.
 * - Every announced trailer must arrive, once, and no other (MalformedTrailerError). Whether an
 *   announced checksum algorithm is known, and whether the value is right, is the caller's matter.
 *
 * Source: AWS "Signature Calculations for the Authorization Header: Transferring Payload in
 * Multiple Chunks", and the same "Including trailing headers".
 */
#ifndef FGW_SIGV4_CHUNKED_H
#define FGW_SIGV4_CHUNKED_H

#include "base/digest.h"
#include "sigv4/auth.h"

enum {
    FGW_CHUNKED_LINE_MAX = 512,
    FGW_CHUNKED_SIZE_LINE_MAX = 256,
    FGW_CHUNKED_TRAILERS_MAX = 4,
    FGW_CHUNKED_TRAILER_BYTES_MAX = 1024,
    FGW_CHUNKED_MIN_SIGNED_CHUNK = 8192
};

struct fgw_chunked_options {
    enum fgw_sig_payload payload;    /* one of the three streaming modes */
    const struct fgw_sig_seed *seed; /* needed by the signed modes; copied */
    uint64_t decoded_length;
    struct fgw_bytes trailer_names; /* value of x-amz-trailer: names, commas; must outlive */
};

/* Reads x-amz-decoded-content-length (absent: MISSING_CONTENT_LENGTH; not a number:
 * INVALID_ARGUMENT) and x-amz-trailer of a request whose payload mode is a streaming one. */
enum fgw_err fgw_chunked_options_from(const struct fgw_sig_auth *auth,
                                      const struct fgw_sig_seed *seed,
                                      struct fgw_chunked_options *out_options,
                                      struct fgw_error *error) FGW_MUST_CHECK;

enum fgw_chunked_state {
    FGW_CHUNKED_SIZE,    /* in a size line */
    FGW_CHUNKED_DATA,    /* in chunk data */
    FGW_CHUNKED_DATA_CR, /* after chunk data */
    FGW_CHUNKED_DATA_LF,
    FGW_CHUNKED_TRAILER, /* after the last chunk's size line, in lines */
    FGW_CHUNKED_DONE,    /* complete; only line ends may follow */
    FGW_CHUNKED_FAILED
};

struct fgw_chunked {
    enum fgw_sig_payload payload;
    enum fgw_chunked_state state;
    uint64_t decoded_length;
    uint64_t decoded_left;
    uint64_t chunk_left;
    uint64_t chunk_size;                      /* of the latest chunk */
    uint64_t chunk_number;                    /* of the latest chunk, from 1 */
    unsigned blank_bytes;                     /* line ends seen where nothing need be */
    struct fgw_sig_seed seed;                 /* signature: of the latest chunk */
    struct fgw_digest digest;                 /* of the data of the current chunk */
    uint8_t chunk_signature[FGW_SHA256_SIZE]; /* as the size line has it */
    struct fgw_bytes announced[FGW_CHUNKED_TRAILERS_MAX];
    size_t announced_count;
    struct {
        struct fgw_bytes name; /* lower case */
        struct fgw_bytes value;
    } trailers[FGW_CHUNKED_TRAILERS_MAX]; /* as they arrived; views into trailer_bytes */
    size_t trailer_count;
    size_t trailer_bytes_len;
    size_t line_len;
    uint8_t line[FGW_CHUNKED_LINE_MAX];
    uint8_t trailer_bytes[FGW_CHUNKED_TRAILER_BYTES_MAX];
};

/* The struct holds views into itself: do not move it. INVALID_REQUEST for a trailer name that is
 * no checksum, or too many. On failure too, deinit is safe and needed. */
enum fgw_err fgw_chunked_init(struct fgw_chunked *chunked,
                              const struct fgw_chunked_options *options,
                              struct fgw_error *error) FGW_MUST_CHECK;
/* Wipes the signing key. Takes zeroed structs. */
void fgw_chunked_deinit(struct fgw_chunked *chunked);

/* Takes bytes off the front of `in`: framing, and at most one run of data. *out_consumed is how
 * many (all of them unless data was found; never 0 for input), *out_data the run (len 0: none).
 * Call again with the rest. Errors: SIGNATURE_DOES_NOT_MATCH, INCOMPLETE_BODY (broken framing,
 * more data than announced), INVALID_CHUNK_SIZE, MALFORMED_TRAILER. */
enum fgw_err fgw_chunked_feed(struct fgw_chunked *chunked, struct fgw_bytes in,
                              size_t *out_consumed, struct fgw_bytes *out_data,
                              struct fgw_error *error) FGW_MUST_CHECK;

/* The body has ended. FGW_OK only when every byte, signature and trailer is there:
 * INCOMPLETE_BODY or MALFORMED_TRAILER otherwise. */
enum fgw_err fgw_chunked_finish(struct fgw_chunked *chunked,
                                struct fgw_error *error) FGW_MUST_CHECK;

/* Value of a trailer that arrived (valid after finish); false when there is none. */
bool fgw_chunked_trailer(const struct fgw_chunked *chunked, const char *name,
                         struct fgw_bytes *out_value);

/* -- encoder: clients, tests, benchmarks --------------------------------------------------- */

struct fgw_chunked_encoder {
    enum fgw_sig_payload payload;
    struct fgw_sig_seed seed; /* signature: of the latest chunk */
};

/* seed may be NULL for the unsigned mode. */
void fgw_chunked_encoder_init(struct fgw_chunked_encoder *encoder, enum fgw_sig_payload payload,
                              const struct fgw_sig_seed *seed);
/* Appends one chunk; data must not be empty. FGW_ERR_TOO_LARGE when `out` is full. */
enum fgw_err fgw_chunked_encode(struct fgw_chunked_encoder *encoder, struct fgw_bytes data,
                                struct fgw_buf *out) FGW_MUST_CHECK;
/* Appends the last chunk and the trailers (names in lower case). */
enum fgw_err fgw_chunked_encode_end(struct fgw_chunked_encoder *encoder,
                                    const struct fgw_sig_header *trailers, size_t count,
                                    struct fgw_buf *out) FGW_MUST_CHECK;

#endif
