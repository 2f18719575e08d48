/* commp.c: see commp.h. Complete subtrees wait in nodes[] like the set bits of a binary counter. */
#include "cid/commp.h"

#include "base/check.h"

enum {
    FIELDS = 4, /* of 254 bits in a quad */
    PADDED_QUAD_SIZE = FIELDS * FGW_COMMP_NODE_SIZE,
    FIELD_TOP_MASK = 0x3f /* of byte 31: 254 bits */
};

static void hash_pair(struct fgw_digest *sha256, const uint8_t left[FGW_COMMP_NODE_SIZE],
                      const uint8_t right[FGW_COMMP_NODE_SIZE], uint8_t out[FGW_COMMP_NODE_SIZE])
{
    uint8_t pair[2 * FGW_COMMP_NODE_SIZE];
    memcpy(pair, left, FGW_COMMP_NODE_SIZE);
    memcpy(pair + FGW_COMMP_NODE_SIZE, right, FGW_COMMP_NODE_SIZE);
    fgw_digest_begin(sha256, FGW_DIGEST_SHA256);
    fgw_digest_update(sha256, fgw_bytes(pair, sizeof pair));
    fgw_digest_end(sha256, out);
    out[FGW_COMMP_NODE_SIZE - 1] &= FIELD_TOP_MASK;
}

/* fr32: the quad as one little-endian number of 1016 bits, cut into fields of 254, low first. */
static void spread_quad(const uint8_t quad[FGW_COMMP_QUAD_SIZE], uint8_t out[PADDED_QUAD_SIZE])
{
    for (size_t field = 0; field < FIELDS; field++) {
        size_t first_bit = field * 254;
        const uint8_t *in = quad + first_bit / 8;
        unsigned shift = first_bit % 8;
        uint8_t *to = out + field * FGW_COMMP_NODE_SIZE;
        for (size_t i = 0; i < FGW_COMMP_NODE_SIZE - 1; i++) {
            to[i] = (uint8_t)((in[i] | in[i + 1] << 8) >> shift);
        }
        /* the last field ends with the quad: there is no next byte, and none is needed */
        unsigned top = in[FGW_COMMP_NODE_SIZE - 1];
        if (field < FIELDS - 1) {
            top |= (unsigned)in[FGW_COMMP_NODE_SIZE] << 8;
        }
        to[FGW_COMMP_NODE_SIZE - 1] = (uint8_t)(top >> shift & FIELD_TOP_MASK);
    }
}

static void add_quad(struct fgw_commp *commp, const uint8_t quad[FGW_COMMP_QUAD_SIZE])
{
    uint8_t leaves[PADDED_QUAD_SIZE];
    uint8_t left[FGW_COMMP_NODE_SIZE];
    uint8_t node[FGW_COMMP_NODE_SIZE];
    spread_quad(quad, leaves);
    hash_pair(&commp->sha256, leaves, leaves + 32, left);
    hash_pair(&commp->sha256, leaves + 64, leaves + 96, node);
    hash_pair(&commp->sha256, left, node, node);
    size_t level = 0;
    for (; (commp->quad_count >> level & 1) != 0; level++) {
        hash_pair(&commp->sha256, commp->nodes[level], node, node);
    }
    memcpy(commp->nodes[level], node, sizeof node);
    commp->quad_count++;
}

void fgw_commp_init(struct fgw_commp *commp)
{
    *commp = (struct fgw_commp){0};
}

void fgw_commp_deinit(struct fgw_commp *commp)
{
    fgw_digest_deinit(&commp->sha256);
}

uint64_t fgw_commp_capacity(unsigned height)
{
    FGW_CHECK(height >= FGW_COMMP_HEIGHT_MIN && height <= FGW_COMMP_HEIGHT_MAX);
    return (UINT64_C(32) << height) / 128 * FGW_COMMP_QUAD_SIZE;
}

enum fgw_err fgw_commp_update(struct fgw_commp *commp, struct fgw_bytes bytes)
{
    if (bytes.len > fgw_commp_capacity(FGW_COMMP_HEIGHT_MAX) - commp->payload_bytes) {
        return FGW_ERR_TOO_LARGE;
    }
    commp->payload_bytes += bytes.len;
    while (bytes.len > 0) {
        if (commp->partial_len == 0 && bytes.len >= FGW_COMMP_QUAD_SIZE) {
            add_quad(commp, bytes.ptr);
            bytes = fgw_bytes_sub(bytes, FGW_COMMP_QUAD_SIZE, SIZE_MAX);
            continue;
        }
        struct fgw_bytes part = fgw_bytes_sub(bytes, 0, FGW_COMMP_QUAD_SIZE - commp->partial_len);
        memcpy(commp->partial + commp->partial_len, part.ptr, part.len);
        commp->partial_len += part.len;
        bytes = fgw_bytes_sub(bytes, part.len, SIZE_MAX);
        if (commp->partial_len == FGW_COMMP_QUAD_SIZE) {
            add_quad(commp, commp->partial);
            commp->partial_len = 0;
        }
    }
    return FGW_OK;
}

/* Joins the waiting subtrees, low ones first, each missing right side a tree of zeros. */
static void join_nodes(struct fgw_commp *commp, unsigned levels, uint8_t root[FGW_COMMP_NODE_SIZE])
{
    uint8_t zeros[FGW_COMMP_NODE_SIZE];
    fgw_commp_zero_root(FGW_COMMP_HEIGHT_MIN, zeros);
    bool joined = false;
    for (unsigned level = 0; level < levels; level++) {
        bool waiting = (commp->quad_count >> level & 1) != 0;
        if (joined && waiting) {
            hash_pair(&commp->sha256, commp->nodes[level], root, root);
        } else if (joined) {
            hash_pair(&commp->sha256, root, zeros, root);
        } else if (waiting) {
            hash_pair(&commp->sha256, commp->nodes[level], zeros, root);
            joined = true;
        }
        hash_pair(&commp->sha256, zeros, zeros, zeros);
    }
    if (!joined) {
        memcpy(root, commp->nodes[levels], FGW_COMMP_NODE_SIZE);
    }
}

void fgw_commp_finish(struct fgw_commp *commp, struct fgw_piece *out_piece)
{
    if (commp->partial_len > 0 || commp->quad_count == 0) {
        memset(commp->partial + commp->partial_len, 0, FGW_COMMP_QUAD_SIZE - commp->partial_len);
        add_quad(commp, commp->partial);
    }
    unsigned levels = 0;
    while (UINT64_C(1) << levels < commp->quad_count) {
        levels++;
    }
    join_nodes(commp, levels, out_piece->root);
    out_piece->height = FGW_COMMP_HEIGHT_MIN + levels;
    out_piece->payload_bytes = commp->payload_bytes;
}

void fgw_commp_zero_root(unsigned height, uint8_t out[FGW_COMMP_NODE_SIZE])
{
    struct fgw_digest sha256 = {0};
    memset(out, 0, FGW_COMMP_NODE_SIZE);
    for (unsigned i = 0; i < height; i++) {
        hash_pair(&sha256, out, out, out);
    }
    fgw_digest_deinit(&sha256);
}
