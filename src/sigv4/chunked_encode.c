/* chunked_encode.c: writes aws-chunked bodies. See chunked.h. */
#include "base/check.h"
#include "base/encode.h"
#include "sigv4/chunked_internal.h"

static bool is_signed(const struct fgw_chunked_encoder *encoder)
{
    return encoder->payload != FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER;
}

void fgw_chunked_encoder_init(struct fgw_chunked_encoder *encoder, enum fgw_sig_payload payload,
                              const struct fgw_sig_seed *seed)
{
    FGW_CHECK(fgw_sig_payload_is_chunked(payload));
    memset(encoder, 0, sizeof *encoder);
    encoder->payload = payload;
    if (is_signed(encoder)) {
        FGW_CHECK(seed != NULL);
        encoder->seed = *seed;
    }
}

/* "size[;chunk-signature=...]\r\n" */
static void append_size_line(struct fgw_chunked_encoder *encoder, struct fgw_bytes data,
                             struct fgw_buf *out)
{
    (void)fgw_buf_appendf(out, "%zx", data.len);
    if (is_signed(encoder)) {
        uint8_t hash[FGW_SHA256_SIZE];
        uint8_t signature[FGW_SHA256_SIZE];
        fgw_sha256(data, hash);
        fgw_chunked_sign_chunk(&encoder->seed, hash, signature);
        fgw_hex_encode(fgw_bytes(signature, sizeof signature), encoder->seed.signature);
        (void)fgw_buf_append_str(out, ";chunk-signature=");
        (void)fgw_buf_append(out, fgw_bytes(encoder->seed.signature, FGW_SIG_HEX_SIZE));
    }
    (void)fgw_buf_append_str(out, "\r\n");
}

enum fgw_err fgw_chunked_encode(struct fgw_chunked_encoder *encoder, struct fgw_bytes data,
                                struct fgw_buf *out)
{
    FGW_CHECK(data.len > 0);
    append_size_line(encoder, data, out);
    (void)fgw_buf_append(out, data);
    (void)fgw_buf_append_str(out, "\r\n");
    return fgw_buf_status(out);
}

static void append_trailer_signature(struct fgw_chunked_encoder *encoder,
                                     struct fgw_bytes canonical, struct fgw_buf *out)
{
    uint8_t hash[FGW_SHA256_SIZE];
    uint8_t signature[FGW_SHA256_SIZE];
    fgw_sha256(canonical, hash);
    fgw_chunked_sign_trailer(&encoder->seed, hash, signature);
    fgw_hex_encode(fgw_bytes(signature, sizeof signature), encoder->seed.signature);
    (void)fgw_buf_append_str(out, "x-amz-trailer-signature:");
    (void)fgw_buf_append(out, fgw_bytes(encoder->seed.signature, FGW_SIG_HEX_SIZE));
    (void)fgw_buf_append_str(out, "\r\n");
}

enum fgw_err fgw_chunked_encode_end(struct fgw_chunked_encoder *encoder,
                                    const struct fgw_sig_header *trailers, size_t count,
                                    struct fgw_buf *out)
{
    struct fgw_buf canonical;
    fgw_buf_init(&canonical, 0);
    append_size_line(encoder, fgw_bytes(NULL, 0), out);
    for (size_t i = 0; i < count; i++) {
        (void)fgw_buf_appendf(&canonical, "%.*s:%.*s\n", FGW_FMT(trailers[i].name),
                              FGW_FMT(trailers[i].value));
        (void)fgw_buf_appendf(out, "%.*s:%.*s\r\n", FGW_FMT(trailers[i].name),
                              FGW_FMT(trailers[i].value));
    }
    if (encoder->payload == FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER) {
        append_trailer_signature(encoder, fgw_buf_bytes(&canonical), out);
    }
    (void)fgw_buf_append_str(out, "\r\n");
    fgw_buf_deinit(&canonical);
    return fgw_buf_status(out);
}
