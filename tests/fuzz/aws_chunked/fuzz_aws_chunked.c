/* fuzz_aws_chunked.c: an aws-chunked body, whole and in pieces: both must agree on outcome and
 * data, and never hand out more than the decoded length.
 *
 * Input: mode byte, step byte, decoded length (two bytes), body. The top bit of the mode byte has
 * the body encoded first by our own encoder, with the rest as data: that must decode. */
#include "base/check.h"
#include "sigv4/chunked.h"

static const enum fgw_sig_payload MODES[] = {FGW_SIG_PAYLOAD_STREAMING_SIGNED,
                                             FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER,
                                             FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fgw_sig_seed make_seed(void)
{
    struct fgw_sig_seed seed;
    memset(&seed, 'a', sizeof seed);
    seed.scope_len = 30;
    return seed;
}

static enum fgw_err decode(const struct fgw_chunked_options *options, struct fgw_bytes wire,
                           size_t step, struct fgw_buf *out)
{
    struct fgw_chunked chunked;
    struct fgw_error error = {0};
    enum fgw_err err = fgw_chunked_init(&chunked, options, &error);
    FGW_CHECK(err == FGW_OK);
    while (err == FGW_OK && wire.len > 0) {
        size_t consumed = 0;
        struct fgw_bytes run = {0};
        err = fgw_chunked_feed(&chunked, fgw_bytes_sub(wire, 0, step), &consumed, &run, &error);
        if (err == FGW_OK) {
            FGW_CHECK(consumed > 0 && consumed <= wire.len);
            (void)fgw_buf_append(out, run);
            wire = fgw_bytes_sub(wire, consumed, SIZE_MAX);
        }
    }
    if (err == FGW_OK) {
        err = fgw_chunked_finish(&chunked, &error);
    }
    FGW_CHECK(err == error.code);
    FGW_CHECK(out->len <= options->decoded_length);
    FGW_CHECK(err != FGW_OK || out->len == options->decoded_length);
    fgw_chunked_deinit(&chunked);
    return err;
}

static void encode(const struct fgw_chunked_options *options, struct fgw_bytes data,
                   struct fgw_buf *wire)
{
    struct fgw_chunked_encoder encoder;
    const struct fgw_sig_header trailer = {FGW_LIT("x-amz-checksum-crc32"), FGW_LIT("AAAAAA==")};
    bool with_trailer = options->payload != FGW_SIG_PAYLOAD_STREAMING_SIGNED;
    fgw_chunked_encoder_init(&encoder, options->payload, options->seed);
    while (data.len > 0) {
        struct fgw_bytes part = fgw_bytes_sub(data, 0, FGW_CHUNKED_MIN_SIGNED_CHUNK);
        FGW_CHECK(fgw_chunked_encode(&encoder, part, wire) == FGW_OK);
        data = fgw_bytes_sub(data, part.len, SIZE_MAX);
    }
    FGW_CHECK(fgw_chunked_encode_end(&encoder, &trailer, with_trailer, wire) == FGW_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4) {
        return 0;
    }
    const struct fgw_sig_seed seed = make_seed();
    struct fgw_bytes body = fgw_bytes(data + 4, size - 4);
    size_t step = (size_t)data[1] + 1;
    bool own = (data[0] & 0x80) != 0;
    struct fgw_chunked_options options = {
        .payload = MODES[(data[0] & 0x7f) % 3],
        .seed = &seed,
        .decoded_length = own ? body.len : fgw_get_u16le(data + 2),
        .trailer_names =
            own || (data[0] & 0x40) != 0 ? FGW_LIT("x-amz-checksum-crc32") : fgw_bytes(NULL, 0)};
    struct fgw_buf wire;
    struct fgw_buf whole;
    struct fgw_buf pieces;
    fgw_buf_init(&wire, 0);
    fgw_buf_init(&whole, 0);
    fgw_buf_init(&pieces, 0);
    if (own) {
        encode(&options, body, &wire);
    } else {
        (void)fgw_buf_append(&wire, body);
    }
    enum fgw_err first = decode(&options, fgw_buf_bytes(&wire), SIZE_MAX, &whole);
    enum fgw_err second = decode(&options, fgw_buf_bytes(&wire), step, &pieces);
    FGW_CHECK(first == second);
    FGW_CHECK(first != FGW_OK || fgw_bytes_eq(fgw_buf_bytes(&whole), fgw_buf_bytes(&pieces)));
    FGW_CHECK(!own || (first == FGW_OK && fgw_bytes_eq(fgw_buf_bytes(&whole), body)));
    fgw_buf_deinit(&wire);
    fgw_buf_deinit(&whole);
    fgw_buf_deinit(&pieces);
    return 0;
}
