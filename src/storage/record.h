/* record.h: the sealed record, the unit in which a log says what happened (docs/formats/record.md).
 *
 * A record is the block of a CAR section: a plain head that makes it findable, a payload sealed with
 * AES-256-GCM, a tag. The seal covers head, group id and file offset, so a copy of a record at
 * another place (users may store copies of group files as objects) opens as nothing.
 * A sealer belongs to one thread; an opener too (it caches the last derived key).
 */
#ifndef FGW_STORAGE_RECORD_H
#define FGW_STORAGE_RECORD_H

#include "base/bytes.h"
#include "base/digest.h"

enum {
    FGW_RECORD_HEAD_SIZE = 96,
    FGW_RECORD_SIZE_MAX = 1024 * 1024,
    FGW_RECORD_PAYLOAD_MAX = FGW_RECORD_SIZE_MAX - FGW_RECORD_HEAD_SIZE - FGW_AEAD_TAG_SIZE,
    FGW_RECORD_PARTS_MAX = 64, /* of a batch */
    FGW_RECORD_VERSION = 1,
    FGW_RECORD_ID_SIZE = 16
};

enum fgw_record_kind {
    FGW_RECORD_BATCH = 1,
    FGW_RECORD_LOG_OPEN = 2,
    FGW_RECORD_BULK_OPEN = 3,
    FGW_RECORD_CHECKPOINT = 4,
    FGW_RECORD_CHECKPOINT_END = 5
};

enum { FGW_RECORD_UNSYNCED = 1 }; /* flags */

/* The plain head, without what sealing fills in. */
struct fgw_record_head {
    uint8_t kind; /* enum fgw_record_kind */
    uint8_t flags;
    uint32_t key_id;                      /* filled in by seal */
    uint8_t store_id[FGW_RECORD_ID_SIZE]; /* filled in by seal */
    uint8_t salt[FGW_RECORD_ID_SIZE];     /* filled in by seal */
    uint64_t counter;                     /* filled in by seal */
    uint64_t batch;
    uint32_t part; /* from 1 */
    uint32_t parts;
    uint64_t previous;       /* offset of the previous record's section; 0 = first */
    uint32_t payload_length; /* filled in by seal */
};

/* Where a record lies: part of what its seal covers. */
struct fgw_record_place {
    uint64_t group;
    uint64_t offset; /* of the section */
};

/* The keys of a directory (file `keys`). */
enum { FGW_KEYRING_MAX = 16 };
struct fgw_keyring {
    unsigned count;
    struct {
        uint32_t id;
        uint8_t bytes[FGW_AEAD_KEY_SIZE];
    } keys[FGW_KEYRING_MAX];
};

struct fgw_record_sealer {
    uint32_t key_id;
    uint8_t store_id[FGW_RECORD_ID_SIZE];
    uint8_t salt[FGW_RECORD_ID_SIZE];
    uint8_t key[FGW_AEAD_KEY_SIZE];
    uint64_t counter;
};

/* Draws a salt; uses the key with the highest id. */
void fgw_record_sealer_init(struct fgw_record_sealer *sealer, const struct fgw_keyring *keyring,
                            const uint8_t store_id[FGW_RECORD_ID_SIZE]);
/* Bytes of the record with this payload. */
static inline size_t fgw_record_size(size_t payload_len)
{
    return FGW_RECORD_HEAD_SIZE + payload_len + FGW_AEAD_TAG_SIZE;
}
/* Writes fgw_record_size(payload.len) bytes; payload.len <= FGW_RECORD_PAYLOAD_MAX. */
void fgw_record_seal(struct fgw_record_sealer *sealer, const struct fgw_record_head *head,
                     struct fgw_record_place place, struct fgw_bytes payload, uint8_t *out);

/* Does a record's magic stand at the front? Says nothing of the rest. */
bool fgw_record_magic(struct fgw_bytes bytes);
/* FGW_ERR_CORRUPT: no record head (magic, CRC, lengths); FGW_ERR_NEWER_VERSION; FGW_ERR_END when
 * fewer than FGW_RECORD_HEAD_SIZE bytes are there. */
enum fgw_err fgw_record_head_decode(struct fgw_bytes bytes, struct fgw_record_head *out_head) FGW_MUST_CHECK;

struct fgw_record_opener {
    const struct fgw_keyring *keyring;
    const uint8_t (*store_ids)[FGW_RECORD_ID_SIZE]; /* accepted ones */
    size_t store_id_count;
    bool cached; /* the three below are set */
    uint32_t key_id;
    uint8_t salt[FGW_RECORD_ID_SIZE];
    uint8_t key[FGW_AEAD_KEY_SIZE];
};

/* keyring and store_ids are borrowed. */
void fgw_record_opener_init(struct fgw_record_opener *opener, const struct fgw_keyring *keyring,
                            const uint8_t (*store_ids)[FGW_RECORD_ID_SIZE], size_t store_id_count);
/* Opens a whole record; the payload is written to out (record.len bytes are enough) and returned as
 * a view. FGW_ERR_CORRUPT: not authentic here (also: foreign store, unknown key);
 * FGW_ERR_NEWER_VERSION. */
enum fgw_err fgw_record_open(struct fgw_record_opener *opener, struct fgw_bytes record,
                             struct fgw_record_place place, uint8_t *out,
                             struct fgw_record_head *out_head, struct fgw_bytes *out_payload) FGW_MUST_CHECK;

#endif
