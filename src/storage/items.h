/* items.h: what a batch says happened: encoding and decoding of its items (docs/formats/record.md).
 * Encoders append to a buffer without maximum; decoders take bytes that a record's seal vouched for
 * and still bound everything. Views point into what was decoded. Any thread. */
#ifndef FGW_STORAGE_ITEMS_H
#define FGW_STORAGE_ITEMS_H

#include "storage/storage.h"

enum fgw_item_tag {
    FGW_ITEM_RUNNING_MS = 0x01,
    FGW_ITEM_WALL_MS = 0x02,
    FGW_ITEM_ROW_PUT = 0x03,
    FGW_ITEM_INDEX_PUT = 0x04, /* checkpoints */
    FGW_ITEM_ROW_DELETE = 0x05,
    FGW_ITEM_ROW_COUNT = 0x06, /* checkpoints */
    FGW_ITEM_BLOCK_HOLD = 0x07,
    FGW_ITEM_BLOB_HOLD = 0x09,
    FGW_ITEM_RELEASE = 0x0b,
    FGW_ITEM_RELEASE_OWNER = 0x0d,
    FGW_ITEM_SLICE = 0x0f,
    FGW_ITEM_FINISH = 0x11,
    FGW_ITEM_ABANDON = 0x13,
    FGW_ITEM_BULK_END = 0x15,
    FGW_ITEM_FREE_BLOCK = 0x17,
    FGW_ITEM_FREE_BLOB = 0x19,
    FGW_ITEM_DROP_SLICE = 0x1b,
    FGW_ITEM_MOVE = 0x1d,
    FGW_ITEM_MARK_BAD = 0x1f,
    FGW_ITEM_PREDECESSOR = 0x21,
    FGW_ITEM_GROUP_GONE = 0x23,
    FGW_ITEM_HOLD_DONE = 0x25,
    FGW_ITEM_CONFIRM = 0x27
};

enum { FGW_LIST_ID_SIZE = 16, FGW_SLICE_BLOCKS = 1000 };
enum fgw_list_kind { FGW_LIST_LEAVES = 0, FGW_LIST_NODES = 1, FGW_LIST_KINDS };

struct fgw_item_block {
    bool written; /* bytes were written for it: group and offset are set */
    uint8_t codec;
    uint8_t digest[FGW_SHA256_SIZE];
    uint32_t len;
    uint32_t crc32c;
    uint64_t group;
    uint64_t offset;
};

struct fgw_item_owner {
    struct fgw_storage_owner address;
    uint64_t extent;
    bool listed;
    bool pending; /* the hold waits for CONFIRM */
};

struct fgw_item_release {
    uint8_t owner_id[FGW_STORAGE_ID_SIZE];
    uint64_t extent;
    uint8_t codec;
    uint8_t digest[FGW_SHA256_SIZE];
};

struct fgw_item_slice {
    uint8_t list_id[FGW_LIST_ID_SIZE];
    uint8_t kind;   /* enum fgw_list_kind */
    uint64_t first; /* index of the first block in the list */
    struct fgw_item_owner owner;
    struct fgw_bytes blocks; /* for fgw_item_next_block */
};

struct fgw_item_finish {
    uint8_t list_id[FGW_LIST_ID_SIZE];
    uint8_t digest[FGW_SHA256_SIZE];
    uint64_t size;
    uint64_t leaves;
    uint64_t nodes;
    struct fgw_item_owner owner;
};

struct fgw_item_move {
    uint8_t digest[FGW_SHA256_SIZE];
    uint64_t from_group, from_offset, to_group, to_offset;
};

struct fgw_item_predecessor {
    uint64_t group; /* 0: none */
    uint64_t end;
    uint64_t last_batch;
};

/* -- encoding ---------------------------------------------------------------------------------- */

void fgw_item_put_u64(struct fgw_buf *out, enum fgw_item_tag tag, uint64_t value);
/* tag ROW_PUT or INDEX_PUT */
void fgw_item_put_row(struct fgw_buf *out, enum fgw_item_tag tag, struct fgw_bytes key,
                      struct fgw_bytes value);
/* A bare value: ROW_DELETE (key), RELEASE_OWNER, HOLD_DONE (owner id), ABANDON (list id),
 * FREE_BLOCK, FREE_BLOB (digest). */
void fgw_item_put_bytes(struct fgw_buf *out, enum fgw_item_tag tag, struct fgw_bytes value);
void fgw_item_put_block_hold(struct fgw_buf *out, const struct fgw_item_block *block,
                             const struct fgw_item_owner *owner);
void fgw_item_put_blob_hold(struct fgw_buf *out, const uint8_t digest[FGW_SHA256_SIZE],
                            const struct fgw_item_owner *owner);
/* tag RELEASE or CONFIRM */
void fgw_item_put_release(struct fgw_buf *out, enum fgw_item_tag tag,
                          const struct fgw_item_release *release);
void fgw_item_put_slice(struct fgw_buf *out, const struct fgw_item_slice *slice,
                        const struct fgw_item_block *blocks, size_t count);
void fgw_item_put_finish(struct fgw_buf *out, const struct fgw_item_finish *finish);
void fgw_item_put_bulk_end(struct fgw_buf *out, uint64_t group, uint64_t end);
void fgw_item_put_drop_slice(struct fgw_buf *out, const uint8_t list_id[FGW_LIST_ID_SIZE],
                             uint8_t kind, uint64_t first);
void fgw_item_put_move(struct fgw_buf *out, const struct fgw_item_move *move);
void fgw_item_put_group_gone(struct fgw_buf *out, uint64_t group);
void fgw_item_put_mark_bad(struct fgw_buf *out, const uint8_t digest[FGW_SHA256_SIZE],
                           uint64_t group, uint64_t offset);
void fgw_item_put_predecessor(struct fgw_buf *out, const struct fgw_item_predecessor *predecessor);

/* -- decoding (FGW_ERR_CORRUPT for values of the wrong shape) ---------------------------------- */

enum fgw_err fgw_item_row(struct fgw_bytes value, struct fgw_bytes *out_key,
                          struct fgw_bytes *out_value) FGW_MUST_CHECK;
enum fgw_err fgw_item_block_hold(struct fgw_bytes value, struct fgw_item_block *out_block,
                                 struct fgw_item_owner *out_owner) FGW_MUST_CHECK;
enum fgw_err fgw_item_blob_hold(struct fgw_bytes value, const uint8_t **out_digest,
                                struct fgw_item_owner *out_owner) FGW_MUST_CHECK;
enum fgw_err fgw_item_release(struct fgw_bytes value,
                              struct fgw_item_release *out_release) FGW_MUST_CHECK;
enum fgw_err fgw_item_slice(struct fgw_bytes value,
                            struct fgw_item_slice *out_slice) FGW_MUST_CHECK;
/* Takes a block off the front; FGW_ERR_END behind the last. */
enum fgw_err fgw_item_next_block(struct fgw_bytes *blocks,
                                 struct fgw_item_block *out_block) FGW_MUST_CHECK;
enum fgw_err fgw_item_finish(struct fgw_bytes value,
                             struct fgw_item_finish *out_finish) FGW_MUST_CHECK;
enum fgw_err fgw_item_bulk_end(struct fgw_bytes value, uint64_t *out_group,
                               uint64_t *out_end) FGW_MUST_CHECK;
enum fgw_err fgw_item_drop_slice(struct fgw_bytes value, const uint8_t **out_list_id,
                                 uint8_t *out_kind, uint64_t *out_first) FGW_MUST_CHECK;
enum fgw_err fgw_item_move(struct fgw_bytes value, struct fgw_item_move *out_move) FGW_MUST_CHECK;
enum fgw_err fgw_item_mark_bad(struct fgw_bytes value, const uint8_t **out_digest,
                               uint64_t *out_group, uint64_t *out_offset) FGW_MUST_CHECK;
enum fgw_err fgw_item_predecessor(struct fgw_bytes value,
                                  struct fgw_item_predecessor *out_predecessor) FGW_MUST_CHECK;

/* Taking fields off the front of a view; false when it is too short. Shared with the index rows. */
bool fgw_take_fixed(struct fgw_bytes *rest, void *out, size_t len);
bool fgw_take_u8(struct fgw_bytes *rest, uint8_t *out);
bool fgw_take_u32le(struct fgw_bytes *rest, uint32_t *out);
bool fgw_take_uvarint(struct fgw_bytes *rest, uint64_t *out);
bool fgw_take_view(struct fgw_bytes *rest, size_t len, struct fgw_bytes *out);
void fgw_put_uvarint(struct fgw_buf *out, uint64_t value);
bool fgw_take_owner(struct fgw_bytes *rest, struct fgw_item_owner *out);
void fgw_put_owner(struct fgw_buf *out, const struct fgw_item_owner *owner);

#endif
