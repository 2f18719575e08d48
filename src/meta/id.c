/* id.c: 16-byte identifiers. See meta.h. */
#include "base/encode.h"
#include "base/rng.h"
#include "meta/meta.h"

bool fgw_id_is_zero(const struct fgw_id *id)
{
    static const struct fgw_id ZERO;
    return memcmp(id, &ZERO, sizeof ZERO) == 0;
}

bool fgw_id_eq(const struct fgw_id *a, const struct fgw_id *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

void fgw_id_random(struct fgw_id *out_id)
{
    fgw_rng_fill(out_id->bytes, sizeof out_id->bytes);
}

/* bytes 0..5 milliseconds, 6..7 counter, 8..15 random; all big-endian */
static uint64_t id_high(const struct fgw_id *id)
{
    return fgw_get_u64be(id->bytes);
}

void fgw_id_version(int64_t now_ms, const struct fgw_id *newest, struct fgw_id *out_id)
{
    uint64_t high = (uint64_t)(now_ms < 0 ? 0 : now_ms) << 16;
    if (newest != NULL && high <= id_high(newest)) {
        /* the clock stands behind what this key has seen: one millisecond on, so that ids grow and
         * Last-Modified never runs backwards */
        high = ((id_high(newest) >> 16) + 1) << 16;
    }
    fgw_put_u64be(out_id->bytes, high);
    fgw_rng_fill(out_id->bytes + 8, 8);
}

int64_t fgw_id_version_ms(const struct fgw_id *id)
{
    return (int64_t)(id_high(id) >> 16);
}

void fgw_id_hex(const struct fgw_id *id, char out[33])
{
    fgw_hex_encode(fgw_bytes(id->bytes, sizeof id->bytes), out);
    out[32] = '\0';
}

enum fgw_err fgw_id_parse(struct fgw_bytes hex, struct fgw_id *out_id)
{
    if (hex.len != 2 * sizeof out_id->bytes) {
        return FGW_ERR_PARSE;
    }
    struct fgw_id id;
    enum fgw_err err = fgw_hex_decode(hex, id.bytes);
    if (err == FGW_OK) {
        *out_id = id;
    }
    return err;
}
