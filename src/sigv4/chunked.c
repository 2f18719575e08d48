/* chunked.c: decoder of aws-chunked bodies. See chunked.h for format and leniency.
 *
 * A state machine over the input: lines (sizes, trailers) collect in chunked->line, data passes
 * through as views and only feeds the chunk's digest. Every length from the network is compared
 * before it is used.
 */
#include "base/check.h"
#include "base/encode.h"
#include "sigv4/chunked_internal.h"
#include "sigv4/sigv4_internal.h"

/* Line ends allowed where the format has none: before the trailer signature, after the end. */
enum { BLANK_BYTES_MAX = 8 };

static bool is_signed(const struct fgw_chunked *c)
{
    return c->payload != FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER;
}

static bool has_trailers(const struct fgw_chunked *c)
{
    return c->payload != FGW_SIG_PAYLOAD_STREAMING_SIGNED;
}

/* -- setting up ---------------------------------------------------------------------------- */

enum fgw_err fgw_chunked_options_from(const struct fgw_sig_auth *auth,
                                      const struct fgw_sig_seed *seed,
                                      struct fgw_chunked_options *out_options,
                                      struct fgw_error *error)
{
    struct fgw_chunked_options options = {.payload = auth->payload, .seed = seed};
    const struct fgw_sig_header *length =
        fgw_sig_header_find(auth->request, "x-amz-decoded-content-length");
    const struct fgw_sig_header *names = fgw_sig_header_find(auth->request, "x-amz-trailer");
    if (length == NULL) {
        return fgw_error_set(error, FGW_ERR_MISSING_CONTENT_LENGTH, NULL);
    }
    if (fgw_bytes_to_u64(fgw_bytes_trim(length->value), &options.decoded_length) != FGW_OK) {
        fgw_error_add(error, "ArgumentName", "x-amz-decoded-content-length");
        return fgw_error_set(error, FGW_ERR_INVALID_ARGUMENT,
                             "x-amz-decoded-content-length must be a number.");
    }
    if (names != NULL) {
        options.trailer_names = names->value;
    }
    *out_options = options;
    return FGW_OK;
}

static enum fgw_err announce(struct fgw_chunked *c, struct fgw_bytes names, struct fgw_error *error)
{
    struct fgw_bytes part;
    while (fgw_bytes_split(&names, ',', &part)) {
        struct fgw_bytes name = fgw_bytes_trim(part);
        if (name.len == 0) {
            continue;
        }
        bool checksum = name.len > 15 &&
                        fgw_sig_name_eq(fgw_bytes_sub(name, 0, 15), FGW_LIT("x-amz-checksum-"));
        if (!checksum || c->announced_count == FGW_CHUNKED_TRAILERS_MAX) {
            return fgw_error_set(error, FGW_ERR_INVALID_REQUEST,
                                 "The value specified in the x-amz-trailer header is not "
                                 "supported");
        }
        c->announced[c->announced_count++] = name;
    }
    return FGW_OK;
}

enum fgw_err fgw_chunked_init(struct fgw_chunked *chunked,
                              const struct fgw_chunked_options *options, struct fgw_error *error)
{
    FGW_CHECK(fgw_sig_payload_is_chunked(options->payload));
    memset(chunked, 0, sizeof *chunked);
    chunked->payload = options->payload;
    chunked->state = FGW_CHUNKED_SIZE;
    chunked->decoded_length = options->decoded_length;
    chunked->decoded_left = options->decoded_length;
    if (is_signed(chunked)) {
        FGW_CHECK(options->seed != NULL);
        chunked->seed = *options->seed;
    }
    return has_trailers(chunked) ? announce(chunked, options->trailer_names, error) : FGW_OK;
}

void fgw_chunked_deinit(struct fgw_chunked *chunked)
{
    fgw_digest_deinit(&chunked->digest);
    explicit_bzero(&chunked->seed, sizeof chunked->seed);
}

/* -- errors -------------------------------------------------------------------------------- */

static enum fgw_err incomplete(const struct fgw_chunked *c, struct fgw_error *error)
{
    fgw_error_add(error, "NumberBytesExpected", "%llu", (unsigned long long)c->decoded_length);
    fgw_error_add(error, "NumberBytesProvided", "%llu",
                  (unsigned long long)(c->decoded_length - c->decoded_left));
    return fgw_error_set(error, FGW_ERR_INCOMPLETE_BODY, NULL);
}

static enum fgw_err broken_framing(struct fgw_error *error)
{
    return fgw_error_set(error, FGW_ERR_INCOMPLETE_BODY,
                         "The chunked encoding of the request body is malformed.");
}

static enum fgw_err malformed_trailer(struct fgw_error *error)
{
    return fgw_error_set(error, FGW_ERR_MALFORMED_TRAILER, NULL);
}

/* -- signatures ---------------------------------------------------------------------------- */

static void sign_lines(const struct fgw_sig_seed *seed, struct fgw_bytes algorithm,
                       const struct fgw_bytes *hashes, size_t hash_count,
                       uint8_t out_signature[FGW_SHA256_SIZE])
{
    struct fgw_sig_string string;
    string.len = 0;
    fgw_sig_string_line(&string, algorithm);
    fgw_sig_string_line(&string, fgw_bytes(seed->amz_date, sizeof seed->amz_date));
    fgw_sig_string_line(&string, fgw_bytes(seed->scope, seed->scope_len));
    fgw_sig_string_line(&string, fgw_bytes(seed->signature, sizeof seed->signature));
    for (size_t i = 0; i < hash_count; i++) {
        char hex[FGW_SIG_HEX_SIZE];
        fgw_hex_encode(hashes[i], hex);
        fgw_sig_string_line(&string, fgw_bytes(hex, sizeof hex));
    }
    fgw_hmac_sha256(fgw_bytes(seed->signing_key, sizeof seed->signing_key),
                    fgw_bytes(string.text, string.len), out_signature);
}

void fgw_chunked_sign_chunk(const struct fgw_sig_seed *seed,
                            const uint8_t data_sha256[FGW_SHA256_SIZE],
                            uint8_t out_signature[FGW_SHA256_SIZE])
{
    static const uint8_t EMPTY_SHA256[FGW_SHA256_SIZE] = {
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4,
        0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b,
        0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55};
    const struct fgw_bytes hashes[] = {fgw_bytes(EMPTY_SHA256, FGW_SHA256_SIZE),
                                       fgw_bytes(data_sha256, FGW_SHA256_SIZE)};
    sign_lines(seed, FGW_LIT("AWS4-HMAC-SHA256-PAYLOAD"), hashes, 2, out_signature);
}

void fgw_chunked_sign_trailer(const struct fgw_sig_seed *seed,
                              const uint8_t trailer_sha256[FGW_SHA256_SIZE],
                              uint8_t out_signature[FGW_SHA256_SIZE])
{
    const struct fgw_bytes hash = fgw_bytes(trailer_sha256, FGW_SHA256_SIZE);
    sign_lines(seed, FGW_LIT("AWS4-HMAC-SHA256-TRAILER"), &hash, 1, out_signature);
}

/* The data of a chunk is complete: its signature must match, and becomes the previous one. */
static enum fgw_err check_chunk(struct fgw_chunked *c, struct fgw_error *error)
{
    uint8_t hash[FGW_SHA256_SIZE];
    uint8_t expected[FGW_SHA256_SIZE];
    fgw_digest_end(&c->digest, hash);
    fgw_chunked_sign_chunk(&c->seed, hash, expected);
    if (!fgw_bytes_eq_secret(fgw_bytes(expected, sizeof expected),
                             fgw_bytes(c->chunk_signature, sizeof c->chunk_signature))) {
        return fgw_error_set(error, FGW_ERR_SIGNATURE_DOES_NOT_MATCH, NULL);
    }
    fgw_hex_encode(fgw_bytes(expected, sizeof expected), c->seed.signature);
    return FGW_OK;
}

static bool trailer_matches(struct fgw_chunked *c, const size_t *order,
                            const uint8_t provided[FGW_SHA256_SIZE])
{
    uint8_t hash[FGW_SHA256_SIZE];
    uint8_t expected[FGW_SHA256_SIZE];
    fgw_digest_begin(&c->digest, FGW_DIGEST_SHA256);
    for (size_t i = 0; i < c->trailer_count; i++) {
        fgw_digest_update(&c->digest, c->trailers[order[i]].name);
        fgw_digest_update(&c->digest, FGW_LIT(":"));
        fgw_digest_update(&c->digest, c->trailers[order[i]].value);
        fgw_digest_update(&c->digest, FGW_LIT("\n"));
    }
    fgw_digest_end(&c->digest, hash);
    fgw_chunked_sign_trailer(&c->seed, hash, expected);
    return fgw_bytes_eq_secret(fgw_bytes(expected, sizeof expected),
                               fgw_bytes(provided, FGW_SHA256_SIZE));
}

static void sort_by_name(const struct fgw_chunked *c, size_t order[FGW_CHUNKED_TRAILERS_MAX])
{
    for (size_t i = 1; i < c->trailer_count && i < FGW_CHUNKED_TRAILERS_MAX; i++) {
        size_t moved = order[i];
        size_t at = i;
        for (;
             at > 0 && fgw_bytes_cmp(c->trailers[moved].name, c->trailers[order[at - 1]].name) < 0;
             at--) {
            order[at] = order[at - 1];
        }
        order[at] = moved;
    }
}

/* In the order they came, or sorted by name: clients with several trailers do either. */
static enum fgw_err check_trailer(struct fgw_chunked *c, struct fgw_bytes value,
                                  struct fgw_error *error)
{
    uint8_t provided[FGW_SHA256_SIZE];
    size_t order[FGW_CHUNKED_TRAILERS_MAX] = {0, 1, 2, 3};
    if (value.len != FGW_SIG_HEX_SIZE || fgw_hex_decode(value, provided) != FGW_OK) {
        return malformed_trailer(error);
    }
    if (trailer_matches(c, order, provided)) {
        return FGW_OK;
    }
    sort_by_name(c, order);
    if (c->trailer_count > 1 && trailer_matches(c, order, provided)) {
        return FGW_OK;
    }
    return fgw_error_set(error, FGW_ERR_SIGNATURE_DOES_NOT_MATCH, NULL);
}

/* -- size lines ---------------------------------------------------------------------------- */

static enum fgw_err parse_size(struct fgw_bytes text, uint64_t *out_size)
{
    uint64_t size = 0;
    if (text.len == 0 || text.len > 16) {
        return FGW_ERR_PARSE;
    }
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        uint8_t letter = (uint8_t)(c | 0x20);
        if (c >= '0' && c <= '9') {
            size = size << 4 | (uint64_t)(c - '0');
        } else if (letter >= 'a' && letter <= 'f') {
            size = size << 4 | (uint64_t)(letter - 'a' + 10);
        } else {
            return FGW_ERR_PARSE;
        }
    }
    *out_size = size;
    return FGW_OK;
}

static enum fgw_err start_chunk(struct fgw_chunked *c, uint64_t size, struct fgw_error *error)
{
    if (size > 0 && is_signed(c) && c->chunk_number > 0 &&
        c->chunk_size < FGW_CHUNKED_MIN_SIGNED_CHUNK) {
        fgw_error_add(error, "Chunk", "%llu", (unsigned long long)c->chunk_number);
        fgw_error_add(error, "BadChunkSize", "%llu", (unsigned long long)c->chunk_size);
        return fgw_error_set(error, FGW_ERR_INVALID_CHUNK_SIZE, NULL);
    }
    if (size > c->decoded_left || (size == 0 && c->decoded_left > 0)) {
        return incomplete(c, error);
    }
    c->chunk_number++;
    c->chunk_size = size;
    c->chunk_left = size;
    c->state = size > 0 ? FGW_CHUNKED_DATA : FGW_CHUNKED_TRAILER;
    if (!is_signed(c)) {
        return FGW_OK;
    }
    fgw_digest_begin(&c->digest, FGW_DIGEST_SHA256);
    return size > 0 ? FGW_OK : check_chunk(c, error);
}

static enum fgw_err size_line(struct fgw_chunked *c, struct fgw_bytes line, struct fgw_error *error)
{
    struct fgw_bytes extension = line;
    struct fgw_bytes digits = {0};
    uint64_t size = 0;
    (void)fgw_bytes_split(&extension, ';', &digits);
    if (parse_size(digits, &size) != FGW_OK) {
        return broken_framing(error);
    }
    if (is_signed(c)) {
        static const char NAME[] = "chunk-signature=";
        struct fgw_bytes hex = fgw_bytes_sub(extension, sizeof NAME - 1, SIZE_MAX);
        if (!fgw_bytes_starts_with(extension, fgw_bytes(NAME, sizeof NAME - 1)) ||
            hex.len != FGW_SIG_HEX_SIZE || fgw_hex_decode(hex, c->chunk_signature) != FGW_OK) {
            return broken_framing(error);
        }
    }
    return start_chunk(c, size, error);
}

/* -- trailers ------------------------------------------------------------------------------ */

bool fgw_chunked_trailer(const struct fgw_chunked *chunked, const char *name,
                         struct fgw_bytes *out_value)
{
    for (size_t i = 0; i < chunked->trailer_count; i++) {
        if (fgw_bytes_ieq_str(chunked->trailers[i].name, name)) {
            *out_value = chunked->trailers[i].value;
            return true;
        }
    }
    return false;
}

static bool trailer_arrived(const struct fgw_chunked *c, struct fgw_bytes name)
{
    for (size_t i = 0; i < c->trailer_count; i++) {
        if (fgw_sig_name_eq(c->trailers[i].name, name)) {
            return true;
        }
    }
    return false;
}

static bool all_arrived(const struct fgw_chunked *c)
{
    for (size_t i = 0; i < c->announced_count; i++) {
        if (!trailer_arrived(c, c->announced[i])) {
            return false;
        }
    }
    return true;
}

static struct fgw_bytes keep_bytes(struct fgw_chunked *c, struct fgw_bytes bytes, bool lower)
{
    uint8_t *to = c->trailer_bytes + c->trailer_bytes_len;
    for (size_t i = 0; i < bytes.len; i++) {
        to[i] = lower ? fgw_sig_lower(bytes.ptr[i]) : bytes.ptr[i];
    }
    c->trailer_bytes_len += bytes.len;
    return fgw_bytes(to, bytes.len);
}

static enum fgw_err keep_trailer(struct fgw_chunked *c, struct fgw_bytes name,
                                 struct fgw_bytes value, struct fgw_error *error)
{
    bool announced = false;
    for (size_t i = 0; i < c->announced_count; i++) {
        announced = announced || fgw_sig_name_eq(c->announced[i], name);
    }
    if (!announced || trailer_arrived(c, name) || c->trailer_count == FGW_CHUNKED_TRAILERS_MAX ||
        name.len + value.len > FGW_CHUNKED_TRAILER_BYTES_MAX - c->trailer_bytes_len) {
        return malformed_trailer(error);
    }
    c->trailers[c->trailer_count].name = keep_bytes(c, name, true);
    c->trailers[c->trailer_count].value = keep_bytes(c, value, false);
    c->trailer_count++;
    return FGW_OK;
}

/* A blank line ends the body, except where the trailer signature is still to come. */
static enum fgw_err blank_line(struct fgw_chunked *c, struct fgw_error *error)
{
    if (c->payload == FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER) {
        c->blank_bytes += 2;
        return c->blank_bytes <= BLANK_BYTES_MAX ? FGW_OK : malformed_trailer(error);
    }
    if (!all_arrived(c)) {
        return malformed_trailer(error);
    }
    c->state = FGW_CHUNKED_DONE;
    return FGW_OK;
}

static enum fgw_err trailer_line(struct fgw_chunked *c, struct fgw_bytes line,
                                 struct fgw_error *error)
{
    if (line.len == 0) {
        return blank_line(c, error);
    }
    if (!has_trailers(c)) {
        return broken_framing(error);
    }
    struct fgw_bytes value = line;
    struct fgw_bytes name = {0};
    (void)fgw_bytes_split(&value, ':', &name);
    name = fgw_bytes_trim(name);
    if (value.ptr == NULL || name.len == 0) {
        return malformed_trailer(error);
    }
    value = fgw_bytes_trim(value);
    if (!is_signed(c) || !fgw_bytes_ieq_str(name, "x-amz-trailer-signature")) {
        return keep_trailer(c, name, value, error);
    }
    if (!all_arrived(c)) {
        return malformed_trailer(error);
    }
    enum fgw_err err = check_trailer(c, value, error);
    if (err == FGW_OK) {
        c->state = FGW_CHUNKED_DONE;
    }
    return err;
}

/* -- feeding ------------------------------------------------------------------------------- */

/* Collects one line up to LF; true when it is complete, without its line end, in *out_line. */
static enum fgw_err take_line(struct fgw_chunked *c, struct fgw_bytes *in, bool *out_complete,
                              struct fgw_error *error)
{
    bool trailer = c->state == FGW_CHUNKED_TRAILER;
    size_t max = trailer ? FGW_CHUNKED_LINE_MAX : FGW_CHUNKED_SIZE_LINE_MAX;
    size_t end = fgw_bytes_find_byte(*in, '\n');
    size_t take = end == SIZE_MAX ? in->len : end + 1;
    if (take > max - c->line_len) {
        return trailer && has_trailers(c) ? malformed_trailer(error) : broken_framing(error);
    }
    memcpy(c->line + c->line_len, in->ptr, take);
    c->line_len += take;
    *in = fgw_bytes_sub(*in, take, SIZE_MAX);
    *out_complete = end != SIZE_MAX;
    return FGW_OK;
}

static enum fgw_err step_line(struct fgw_chunked *c, struct fgw_bytes *in, struct fgw_error *error)
{
    bool complete = false;
    enum fgw_err err = take_line(c, in, &complete, error);
    if (err != FGW_OK || !complete) {
        return err;
    }
    struct fgw_bytes line = fgw_bytes(c->line, c->line_len - 1);
    bool has_cr = line.len > 0 && line.ptr[line.len - 1] == '\r';
    line.len -= has_cr;
    c->line_len = 0;
    if (c->state == FGW_CHUNKED_TRAILER) {
        return trailer_line(c, line, error);
    }
    return has_cr ? size_line(c, line, error) : broken_framing(error);
}

static enum fgw_err step_data(struct fgw_chunked *c, struct fgw_bytes *in,
                              struct fgw_bytes *out_data, struct fgw_error *error)
{
    size_t take = in->len < c->chunk_left ? in->len : (size_t)c->chunk_left;
    struct fgw_bytes data = fgw_bytes_sub(*in, 0, take);
    *in = fgw_bytes_sub(*in, take, SIZE_MAX);
    c->chunk_left -= take;
    c->decoded_left -= take;
    if (is_signed(c)) {
        fgw_digest_update(&c->digest, data);
    }
    *out_data = data;
    if (c->chunk_left > 0) {
        return FGW_OK;
    }
    c->state = FGW_CHUNKED_DATA_CR;
    return is_signed(c) ? check_chunk(c, error) : FGW_OK;
}

static enum fgw_err step_data_end(struct fgw_chunked *c, struct fgw_bytes *in,
                                  struct fgw_error *error)
{
    bool want_cr = c->state == FGW_CHUNKED_DATA_CR;
    if (in->ptr[0] != (want_cr ? '\r' : '\n')) {
        return broken_framing(error);
    }
    *in = fgw_bytes_sub(*in, 1, SIZE_MAX);
    c->state = want_cr ? FGW_CHUNKED_DATA_LF : FGW_CHUNKED_SIZE;
    return FGW_OK;
}

static enum fgw_err step_after_end(struct fgw_chunked *c, struct fgw_bytes *in,
                                   struct fgw_error *error)
{
    bool line_end = in->ptr[0] == '\r' || in->ptr[0] == '\n';
    if (!line_end || ++c->blank_bytes > BLANK_BYTES_MAX) {
        return has_trailers(c) ? malformed_trailer(error) : broken_framing(error);
    }
    *in = fgw_bytes_sub(*in, 1, SIZE_MAX);
    return FGW_OK;
}

static enum fgw_err step(struct fgw_chunked *c, struct fgw_bytes *in, struct fgw_bytes *out_data,
                         struct fgw_error *error)
{
    switch (c->state) {
    case FGW_CHUNKED_SIZE:
    case FGW_CHUNKED_TRAILER:
        return step_line(c, in, error);
    case FGW_CHUNKED_DATA:
        return step_data(c, in, out_data, error);
    case FGW_CHUNKED_DATA_CR:
    case FGW_CHUNKED_DATA_LF:
        return step_data_end(c, in, error);
    case FGW_CHUNKED_DONE:
        return step_after_end(c, in, error);
    case FGW_CHUNKED_FAILED:
        break;
    }
    return broken_framing(error);
}

enum fgw_err fgw_chunked_feed(struct fgw_chunked *chunked, struct fgw_bytes in,
                              size_t *out_consumed, struct fgw_bytes *out_data,
                              struct fgw_error *error)
{
    struct fgw_bytes rest = in;
    struct fgw_bytes data = {0};
    while (rest.len > 0 && data.len == 0) {
        enum fgw_err err = step(chunked, &rest, &data, error);
        if (err != FGW_OK) {
            chunked->state = FGW_CHUNKED_FAILED;
            return err;
        }
    }
    *out_consumed = in.len - rest.len;
    *out_data = data;
    return FGW_OK;
}

enum fgw_err fgw_chunked_finish(struct fgw_chunked *chunked, struct fgw_error *error)
{
    struct fgw_chunked *c = chunked;
    enum fgw_err err = FGW_OK;
    if (c->state == FGW_CHUNKED_DONE) {
        return FGW_OK;
    }
    if (c->state != FGW_CHUNKED_TRAILER) {
        err = incomplete(c, error);
    } else if (c->line_len > 0 || !all_arrived(c) ||
               (c->payload == FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER && c->trailer_count > 0)) {
        err = has_trailers(c) ? malformed_trailer(error) : broken_framing(error);
    }
    c->state = err == FGW_OK ? FGW_CHUNKED_DONE : FGW_CHUNKED_FAILED;
    return err;
}
