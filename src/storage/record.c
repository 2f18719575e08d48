/* record.c: see record.h; layout in docs/formats/record.md.
 *
 *  0 magic 8 | version 2 | kind 1 | flags 1 | key id 4
 * 16 store id 16 | 32 salt 16 | 48 counter 8 | 56 batch 8 | 64 part 4 | 68 parts 4
 * 72 previous 8 | 80 payload length 4 | 84 zero 8 | 92 CRC32C of 0..91 | 96 payload | tag 16
 *
 * Commit point: none of its own; a batch counts when all its parts are there and synced.
 * Crash argument: a record cut anywhere fails its length, CRC or tag; a record written again at the
 * same place after a torn batch has another salt, so no nonce is used twice with one key.
 */
#include "storage/record.h"

#include "base/check.h"
#include "base/crc.h"
#include "base/rng.h"

static const uint8_t MAGIC[8] = {'F', 'G', 'W', 'R', 'E', 'C', 'R', 'D'};

enum { CRC_OFFSET = 92, PLACE_SIZE = 16 };
_Static_assert(CRC_OFFSET + 4 == FGW_RECORD_HEAD_SIZE, "a disk format");

static void derive_key(const uint8_t directory_key[FGW_AEAD_KEY_SIZE],
                       const uint8_t salt[FGW_RECORD_ID_SIZE], uint8_t out[FGW_AEAD_KEY_SIZE])
{
    fgw_hkdf_sha256(fgw_bytes(directory_key, FGW_AEAD_KEY_SIZE), fgw_bytes(salt, FGW_RECORD_ID_SIZE),
                    FGW_LIT("fgw record v1"), out, FGW_AEAD_KEY_SIZE);
}

void fgw_record_sealer_init(struct fgw_record_sealer *sealer, const struct fgw_keyring *keyring,
                            const uint8_t store_id[FGW_RECORD_ID_SIZE])
{
    FGW_CHECK(keyring->count > 0);
    unsigned newest = 0;
    for (unsigned i = 1; i < keyring->count; i++) {
        newest = keyring->keys[i].id > keyring->keys[newest].id ? i : newest;
    }
    sealer->key_id = keyring->keys[newest].id;
    memcpy(sealer->store_id, store_id, FGW_RECORD_ID_SIZE);
    fgw_rng_fill(sealer->salt, sizeof sealer->salt);
    derive_key(keyring->keys[newest].bytes, sealer->salt, sealer->key);
    sealer->counter = 0;
}

static void encode_head(const struct fgw_record_head *head, uint8_t out[FGW_RECORD_HEAD_SIZE])
{
    memcpy(out, MAGIC, sizeof MAGIC);
    fgw_put_u16le(out + 8, FGW_RECORD_VERSION);
    out[10] = head->kind;
    out[11] = head->flags;
    fgw_put_u32le(out + 12, head->key_id);
    memcpy(out + 16, head->store_id, FGW_RECORD_ID_SIZE);
    memcpy(out + 32, head->salt, FGW_RECORD_ID_SIZE);
    fgw_put_u64le(out + 48, head->counter);
    fgw_put_u64le(out + 56, head->batch);
    fgw_put_u32le(out + 64, head->part);
    fgw_put_u32le(out + 68, head->parts);
    fgw_put_u64le(out + 72, head->previous);
    fgw_put_u32le(out + 80, head->payload_length);
    fgw_put_u64le(out + 84, 0);
    fgw_put_u32le(out + CRC_OFFSET, fgw_crc32c(0, fgw_bytes(out, CRC_OFFSET)));
}

static void make_nonce(uint64_t counter, uint8_t out[FGW_AEAD_NONCE_SIZE])
{
    memset(out, 0, 4);
    fgw_put_u64be(out + 4, counter);
}

static void make_associated(const uint8_t *head, struct fgw_record_place place,
                            uint8_t out[FGW_RECORD_HEAD_SIZE + PLACE_SIZE])
{
    memcpy(out, head, FGW_RECORD_HEAD_SIZE);
    fgw_put_u64le(out + FGW_RECORD_HEAD_SIZE, place.group);
    fgw_put_u64le(out + FGW_RECORD_HEAD_SIZE + 8, place.offset);
}

void fgw_record_seal(struct fgw_record_sealer *sealer, const struct fgw_record_head *head,
                     struct fgw_record_place place, struct fgw_bytes payload, uint8_t *out)
{
    uint8_t nonce[FGW_AEAD_NONCE_SIZE];
    uint8_t associated[FGW_RECORD_HEAD_SIZE + PLACE_SIZE];
    struct fgw_record_head full = *head;
    FGW_CHECK(payload.len <= FGW_RECORD_PAYLOAD_MAX);
    full.key_id = sealer->key_id;
    memcpy(full.store_id, sealer->store_id, sizeof full.store_id);
    memcpy(full.salt, sealer->salt, sizeof full.salt);
    full.counter = sealer->counter++;
    full.payload_length = (uint32_t)payload.len;
    encode_head(&full, out);
    make_nonce(full.counter, nonce);
    make_associated(out, place, associated);
    fgw_aead_seal(sealer->key, nonce, fgw_bytes(associated, sizeof associated), payload,
                  out + FGW_RECORD_HEAD_SIZE, out + FGW_RECORD_HEAD_SIZE + payload.len);
}

bool fgw_record_magic(struct fgw_bytes bytes)
{
    return bytes.len >= sizeof MAGIC && memcmp(bytes.ptr, MAGIC, sizeof MAGIC) == 0;
}

static bool head_plausible(const struct fgw_record_head *head)
{
    return head->payload_length <= FGW_RECORD_PAYLOAD_MAX && head->part >= 1 &&
           head->part <= head->parts;
}

enum fgw_err fgw_record_head_decode(struct fgw_bytes bytes, struct fgw_record_head *out_head)
{
    if (bytes.len < FGW_RECORD_HEAD_SIZE) {
        return FGW_ERR_END;
    }
    const uint8_t *in = bytes.ptr;
    if (!fgw_record_magic(bytes) ||
        fgw_get_u32le(in + CRC_OFFSET) != fgw_crc32c(0, fgw_bytes(in, CRC_OFFSET))) {
        return FGW_ERR_CORRUPT;
    }
    if (fgw_get_u16le(in + 8) != FGW_RECORD_VERSION) {
        return FGW_ERR_NEWER_VERSION;
    }
    struct fgw_record_head head = {.kind = in[10],
                                   .flags = in[11],
                                   .key_id = fgw_get_u32le(in + 12),
                                   .counter = fgw_get_u64le(in + 48),
                                   .batch = fgw_get_u64le(in + 56),
                                   .part = fgw_get_u32le(in + 64),
                                   .parts = fgw_get_u32le(in + 68),
                                   .previous = fgw_get_u64le(in + 72),
                                   .payload_length = fgw_get_u32le(in + 80)};
    memcpy(head.store_id, in + 16, sizeof head.store_id);
    memcpy(head.salt, in + 32, sizeof head.salt);
    if (!head_plausible(&head)) {
        return FGW_ERR_CORRUPT;
    }
    *out_head = head;
    return FGW_OK;
}

void fgw_record_opener_init(struct fgw_record_opener *opener, const struct fgw_keyring *keyring,
                            const uint8_t (*store_ids)[FGW_RECORD_ID_SIZE], size_t store_id_count)
{
    *opener = (struct fgw_record_opener){
        .keyring = keyring, .store_ids = store_ids, .store_id_count = store_id_count};
}

static bool store_accepted(const struct fgw_record_opener *opener, const uint8_t *store_id)
{
    for (size_t i = 0; i < opener->store_id_count; i++) {
        if (memcmp(opener->store_ids[i], store_id, FGW_RECORD_ID_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

static bool prepare_key(struct fgw_record_opener *opener, const struct fgw_record_head *head)
{
    if (opener->cached && opener->key_id == head->key_id &&
        memcmp(opener->salt, head->salt, sizeof opener->salt) == 0) {
        return true;
    }
    for (unsigned i = 0; i < opener->keyring->count; i++) {
        if (opener->keyring->keys[i].id == head->key_id) {
            derive_key(opener->keyring->keys[i].bytes, head->salt, opener->key);
            opener->key_id = head->key_id;
            memcpy(opener->salt, head->salt, sizeof opener->salt);
            opener->cached = true;
            return true;
        }
    }
    return false;
}

enum fgw_err fgw_record_open(struct fgw_record_opener *opener, struct fgw_bytes record,
                             struct fgw_record_place place, uint8_t *out,
                             struct fgw_record_head *out_head, struct fgw_bytes *out_payload)
{
    struct fgw_record_head head;
    uint8_t nonce[FGW_AEAD_NONCE_SIZE];
    uint8_t associated[FGW_RECORD_HEAD_SIZE + PLACE_SIZE];
    enum fgw_err err = fgw_record_head_decode(record, &head);
    if (err != FGW_OK) {
        return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
    }
    if (record.len != fgw_record_size(head.payload_length) ||
        !store_accepted(opener, head.store_id) || !prepare_key(opener, &head)) {
        return FGW_ERR_CORRUPT;
    }
    struct fgw_bytes sealed = fgw_bytes(record.ptr + FGW_RECORD_HEAD_SIZE, head.payload_length);
    make_nonce(head.counter, nonce);
    make_associated(record.ptr, place, associated);
    err = fgw_aead_open(opener->key, nonce, fgw_bytes(associated, sizeof associated), sealed,
                        sealed.ptr + sealed.len, out);
    if (err == FGW_OK) {
        *out_head = head;
        *out_payload = fgw_bytes(out, sealed.len);
    }
    return err;
}
