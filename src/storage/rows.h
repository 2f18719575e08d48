/* rows.h: keys and values of the block index (docs/formats/index.md). Pure functions; decoded rows
 * point into the value they came from. Decoders answer FGW_ERR_CORRUPT or, for another version
 * byte, FGW_ERR_NEWER_VERSION. */
#ifndef FGW_STORAGE_ROWS_H
#define FGW_STORAGE_ROWS_H

#include "storage/items.h"

enum { FGW_ROW_KEY_MAX = 64, FGW_ROW_VERSION = 1 };

/* A key of the blocks family. */
struct fgw_row_key {
    uint8_t bytes[FGW_ROW_KEY_MAX];
    size_t len;
};
static inline struct fgw_bytes fgw_row_key_bytes(const struct fgw_row_key *key)
{
    return fgw_bytes(key->bytes, key->len);
}

struct fgw_row_key fgw_row_key_block(const uint8_t digest[FGW_SHA256_SIZE]);
struct fgw_row_key fgw_row_key_blob(const uint8_t digest[FGW_SHA256_SIZE]);
/* extent UINT64_MAX with a list id as owner. */
struct fgw_row_key fgw_row_key_ref(const uint8_t digest[FGW_SHA256_SIZE],
                                   const uint8_t owner_id[FGW_STORAGE_ID_SIZE], uint64_t extent);
struct fgw_row_key fgw_row_key_hold(const uint8_t owner_id[FGW_STORAGE_ID_SIZE], uint64_t extent);
struct fgw_row_key fgw_row_key_pending(const uint8_t owner_id[FGW_STORAGE_ID_SIZE],
                                       uint64_t extent);
struct fgw_row_key fgw_row_key_slice(const uint8_t list_id[FGW_LIST_ID_SIZE], uint8_t kind,
                                     uint64_t first);
struct fgw_row_key fgw_row_key_list(const uint8_t list_id[FGW_LIST_ID_SIZE]);
/* kind 'b', 'B' (id: digest) or 'o' (id: owner id, released_at 0). */
struct fgw_row_key fgw_row_key_queue(uint64_t released_at, char kind, const uint8_t *id);
struct fgw_row_key fgw_row_key_group(uint64_t group);
struct fgw_row_key fgw_row_key_applied(void);
struct fgw_row_key fgw_row_key_last_group(void);
struct fgw_row_key fgw_row_key_count(void);

enum fgw_block_owner { FGW_BLOCK_UNOWNED = 0, FGW_BLOCK_OWNED = 1, FGW_BLOCK_LISTED = 2 };

struct fgw_block_row {
    enum fgw_block_owner owner_kind;
    bool bad;
    uint8_t codec;
    uint32_t crc32c;
    uint32_t len;
    uint64_t group;
    uint64_t offset;
    uint64_t refs;
    uint64_t own_refs;                 /* of them the inline owner's */
    uint64_t released_at;              /* 0 while refs > 0 */
    struct fgw_item_owner owner;       /* FGW_BLOCK_OWNED */
    uint8_t list_id[FGW_LIST_ID_SIZE]; /* FGW_BLOCK_LISTED */
};
void fgw_block_row_encode(struct fgw_buf *out, const struct fgw_block_row *row);
enum fgw_err fgw_block_row_decode(struct fgw_bytes value,
                                  struct fgw_block_row *out_row) FGW_MUST_CHECK;

struct fgw_ref_row {
    uint64_t count;
    bool listed;
    bool of_list; /* no address follows */
    uint8_t bucket_id[FGW_STORAGE_ID_SIZE];
    struct fgw_bytes key;
};
void fgw_ref_row_encode(struct fgw_buf *out, const struct fgw_ref_row *row);
enum fgw_err fgw_ref_row_decode(struct fgw_bytes value, struct fgw_ref_row *out_row) FGW_MUST_CHECK;

struct fgw_hold_row {
    uint8_t codec;
    uint8_t digest[FGW_SHA256_SIZE];
    uint8_t bucket_id[FGW_STORAGE_ID_SIZE];
    struct fgw_bytes key;
};
void fgw_hold_row_encode(struct fgw_buf *out, const struct fgw_hold_row *row);
enum fgw_err fgw_hold_row_decode(struct fgw_bytes value,
                                 struct fgw_hold_row *out_row) FGW_MUST_CHECK;

/* A hold that waits for CONFIRM. */
struct fgw_pending_row {
    uint8_t codec;
    uint8_t digest[FGW_SHA256_SIZE];
    uint8_t bucket_id[FGW_STORAGE_ID_SIZE];
    uint64_t since_ms; /* running time */
    struct fgw_bytes key;
};
void fgw_pending_row_encode(struct fgw_buf *out, const struct fgw_pending_row *row);
enum fgw_err fgw_pending_row_decode(struct fgw_bytes value,
                                    struct fgw_pending_row *out_row) FGW_MUST_CHECK;

struct fgw_blob_row {
    uint64_t size;
    uint64_t leaves;
    uint64_t nodes;
    uint64_t holds;
    uint64_t released_at;
    uint8_t list_id[FGW_LIST_ID_SIZE];
};
void fgw_blob_row_encode(struct fgw_buf *out, const struct fgw_blob_row *row);
enum fgw_err fgw_blob_row_decode(struct fgw_bytes value,
                                 struct fgw_blob_row *out_row) FGW_MUST_CHECK;

enum { FGW_LIST_PENDING = 0, FGW_LIST_DROPPING = 1 };
struct fgw_list_row {
    uint8_t state;
    uint64_t count[FGW_LIST_KINDS]; /* blocks logged, or left to drop */
    struct fgw_item_owner owner;    /* FGW_LIST_PENDING */
};
void fgw_list_row_encode(struct fgw_buf *out, const struct fgw_list_row *row);
enum fgw_err fgw_list_row_decode(struct fgw_bytes value,
                                 struct fgw_list_row *out_row) FGW_MUST_CHECK;

enum { FGW_GROUP_LOG = 1, FGW_GROUP_BULK = 2 };
struct fgw_group_row {
    uint8_t kind;
    uint64_t end;
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t written_bytes; /* sections of blocks that were ever logged to lie in it */
};
void fgw_group_row_encode(struct fgw_buf *out, const struct fgw_group_row *row);
enum fgw_err fgw_group_row_decode(struct fgw_bytes value,
                                  struct fgw_group_row *out_row) FGW_MUST_CHECK;

/* How far the log is in the index. */
struct fgw_applied {
    uint64_t batch;
    uint64_t group;
    uint64_t end;
    uint64_t last_record; /* offset of the batch's last record */
    uint64_t running_ms;
};
void fgw_applied_encode(struct fgw_buf *out, const struct fgw_applied *applied);
enum fgw_err fgw_applied_decode(struct fgw_bytes value,
                                struct fgw_applied *out_applied) FGW_MUST_CHECK;

void fgw_last_group_encode(struct fgw_buf *out, uint64_t group);
enum fgw_err fgw_last_group_decode(struct fgw_bytes value, uint64_t *out_group) FGW_MUST_CHECK;

#endif
