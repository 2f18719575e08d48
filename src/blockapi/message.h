/* message.h: payloads of the block API's frames (docs/formats/block-api.md). Encoding goes into a
 * buffer, decoding gives views into the payload. Decoders take hostile bytes: FGW_ERR_PARSE for
 * whatever does not fit. Pure functions.
 */
#ifndef FGW_BLOCKAPI_MESSAGE_H
#define FGW_BLOCKAPI_MESSAGE_H

#include "base/bytes.h"
#include "cid/cid.h"

enum fgw_blockapi_kind {
    FGW_BLOCKAPI_AUTH = 1,
    FGW_BLOCKAPI_PUT = 2,
    FGW_BLOCKAPI_BEGIN = 3,
    FGW_BLOCKAPI_BLOCK = 4,
    FGW_BLOCKAPI_FINISH = 5,
    FGW_BLOCKAPI_ABORT = 6,
    FGW_BLOCKAPI_HOLD = 7,
    FGW_BLOCKAPI_CONFIRM = 8,
    FGW_BLOCKAPI_RELEASE = 9,
    FGW_BLOCKAPI_READ = 10,
    FGW_BLOCKAPI_LEAVES = 11,
    FGW_BLOCKAPI_HEALTH = 12,
    FGW_BLOCKAPI_DAMAGED = 13,
    FGW_BLOCKAPI_ANSWER = 128,
    FGW_BLOCKAPI_DATA = 129,
    FGW_BLOCKAPI_WORKING = 130
};

enum {
    FGW_BLOCKAPI_HEAD_SIZE = 40,
    FGW_BLOCKAPI_BLOCK_HEAD = 40, /* CID and CRC32C of a block */
    FGW_BLOCKAPI_DATA_HEAD_MAX = 48,
    FGW_BLOCKAPI_ANSWER_HEAD = 32,
    FGW_BLOCKAPI_OWNER_KEY_MAX = 1400,
    FGW_BLOCKAPI_LEAVES_MAX = 4096,
    FGW_BLOCKAPI_READ_ONLY = 1,
    FGW_BLOCKAPI_BELOW_RESERVE = 2,
    FGW_BLOCKAPI_FENCED = 4
};

/* What every request begins with. */
struct fgw_blockapi_head {
    uint8_t store_id[16];
    uint64_t epoch;
    uint64_t set;
    uint64_t set_epoch;
};

struct fgw_blockapi_owner {
    uint8_t bucket_id[16];
    uint8_t owner_id[16];
    uint64_t extent;
    struct fgw_bytes key;
};

struct fgw_blockapi_block {
    struct fgw_cid cid;
    uint32_t crc32c;
    struct fgw_bytes bytes;
};

/* What a store read for a reader. */
struct fgw_blockapi_data {
    uint64_t offset;       /* of the bytes in the blob */
    uint32_t crc32c;       /* of the bytes; of a whole leaf the one it was stored with */
    const uint8_t *digest; /* SHA-256 of the leaf they belong to; NULL in version 1 */
    struct fgw_bytes bytes;
};

struct fgw_blockapi_answer {
    enum fgw_err err; /* of the request: the status translated */
    uint8_t store_id[16];
    uint64_t epoch;
    struct fgw_bytes text;
    struct fgw_bytes extra;
};

struct fgw_blockapi_health {
    uint64_t free_bytes;
    uint64_t total_bytes;
    uint32_t flags;
};

/* -- encoding: appends --------------------------------------------------------------------------- */

void fgw_blockapi_put_head(struct fgw_buf *out, const struct fgw_blockapi_head *head);
void fgw_blockapi_put_owner(struct fgw_buf *out, const struct fgw_blockapi_owner *owner);
/* CID and CRC only: the bytes follow as a part of their own. */
void fgw_blockapi_put_block_head(struct fgw_buf *out, const struct fgw_cid *cid, uint32_t crc32c);
void fgw_blockapi_put_cid(struct fgw_buf *out, const struct fgw_cid *cid);
void fgw_blockapi_put_u32(struct fgw_buf *out, uint32_t value);
void fgw_blockapi_put_u64(struct fgw_buf *out, uint64_t value);
/* The text is cut to 1,024 bytes. */
void fgw_blockapi_put_answer(struct fgw_buf *out, const struct fgw_blockapi_answer *answer);
void fgw_blockapi_put_health(struct fgw_buf *out, const struct fgw_blockapi_health *health);
/* What stands before the bytes; its size is what the version's frames have (at most the maximum). */
size_t fgw_blockapi_data_head_size(uint8_t version);
void fgw_blockapi_data_head(uint8_t version, const struct fgw_blockapi_data *data,
                            uint8_t out[FGW_BLOCKAPI_DATA_HEAD_MAX]);

/* -- decoding: takes from the front of *rest ---------------------------------------------------- */

enum fgw_err fgw_blockapi_take_head(struct fgw_bytes *rest,
                                    struct fgw_blockapi_head *out) FGW_MUST_CHECK;
enum fgw_err fgw_blockapi_take_owner(struct fgw_bytes *rest,
                                     struct fgw_blockapi_owner *out) FGW_MUST_CHECK;
enum fgw_err fgw_blockapi_take_cid(struct fgw_bytes *rest, struct fgw_cid *out) FGW_MUST_CHECK;
enum fgw_err fgw_blockapi_take_u32(struct fgw_bytes *rest, uint32_t *out) FGW_MUST_CHECK;
enum fgw_err fgw_blockapi_take_u64(struct fgw_bytes *rest, uint64_t *out) FGW_MUST_CHECK;
/* All of the rest. */
enum fgw_err fgw_blockapi_take_block(struct fgw_bytes *rest,
                                     struct fgw_blockapi_block *out) FGW_MUST_CHECK;
enum fgw_err fgw_blockapi_take_data(uint8_t version, struct fgw_bytes rest,
                                    struct fgw_blockapi_data *out) FGW_MUST_CHECK;
enum fgw_err fgw_blockapi_take_answer(struct fgw_bytes payload,
                                      struct fgw_blockapi_answer *out) FGW_MUST_CHECK;
enum fgw_err fgw_blockapi_take_health(struct fgw_bytes extra,
                                      struct fgw_blockapi_health *out) FGW_MUST_CHECK;

#endif
