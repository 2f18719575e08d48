/* test_record.c: the sealed record: what opens, and what must not. */
#include "cmocka_all.h"

#include "base/crc.h"
#include "storage/record.h"

static const uint8_t STORE[1][FGW_RECORD_ID_SIZE] = {"store-one"};

static struct fgw_keyring keyring(void)
{
    struct fgw_keyring ring = {.count = 2};
    ring.keys[0].id = 7;
    memset(ring.keys[0].bytes, 0x11, FGW_AEAD_KEY_SIZE);
    ring.keys[1].id = 3;
    memset(ring.keys[1].bytes, 0x22, FGW_AEAD_KEY_SIZE);
    return ring;
}

static const struct fgw_record_place PLACE = {5, 4711};
static const struct fgw_record_head HEAD = {
    .kind = FGW_RECORD_BATCH, .batch = 9, .part = 1, .parts = 2, .previous = 99};

static size_t seal(struct fgw_record_sealer *sealer, uint8_t *out)
{
    fgw_record_seal(sealer, &HEAD, PLACE, FGW_LIT("what happened"), out);
    return fgw_record_size(13);
}

static enum fgw_err open_at(const struct fgw_keyring *ring, struct fgw_bytes record,
                            struct fgw_record_place place)
{
    uint8_t out[256];
    struct fgw_record_head head;
    struct fgw_bytes payload;
    struct fgw_record_opener opener;
    fgw_record_opener_init(&opener, ring, STORE, 1);
    enum fgw_err err = fgw_record_open(&opener, record, place, out, &head, &payload);
    if (err == FGW_OK) {
        assert_true(fgw_bytes_eq_str(payload, "what happened"));
        assert_int_equal(head.batch, 9);
        assert_int_equal(head.parts, 2);
        assert_int_equal(head.previous, 99);
        assert_int_equal(head.key_id, 7);
    }
    return err;
}

static void opens_what_was_sealed(void **state)
{
    (void)state;
    uint8_t record[256];
    struct fgw_keyring ring = keyring();
    struct fgw_record_sealer sealer;
    fgw_record_sealer_init(&sealer, &ring, STORE[0]);
    size_t len = seal(&sealer, record);
    assert_int_equal(open_at(&ring, fgw_bytes(record, len), PLACE), FGW_OK);
    uint8_t again[256];
    assert_int_equal(seal(&sealer, again), len);
    assert_memory_not_equal(record + FGW_RECORD_HEAD_SIZE, again + FGW_RECORD_HEAD_SIZE, 13);
}

static void refuses_every_flipped_bit(void **state)
{
    (void)state;
    uint8_t record[256];
    struct fgw_keyring ring = keyring();
    struct fgw_record_sealer sealer;
    fgw_record_sealer_init(&sealer, &ring, STORE[0]);
    size_t len = seal(&sealer, record);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        record[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(open_at(&ring, fgw_bytes(record, len), PLACE), FGW_OK);
        record[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < len; cut++) {
        assert_int_equal(open_at(&ring, fgw_bytes(record, cut), PLACE), FGW_ERR_CORRUPT);
    }
}

static void refuses_another_place_store_or_key(void **state)
{
    (void)state;
    uint8_t record[256];
    struct fgw_keyring ring = keyring();
    struct fgw_record_sealer sealer;
    fgw_record_sealer_init(&sealer, &ring, STORE[0]);
    size_t len = seal(&sealer, record);
    struct fgw_bytes view = fgw_bytes(record, len);
    assert_int_equal(open_at(&ring, view, (struct fgw_record_place){5, 4712}), FGW_ERR_CORRUPT);
    assert_int_equal(open_at(&ring, view, (struct fgw_record_place){6, 4711}), FGW_ERR_CORRUPT);
    ring.keys[0].id = 8;
    assert_int_equal(open_at(&ring, view, PLACE), FGW_ERR_CORRUPT);
    ring = keyring();
    static const uint8_t OTHER[FGW_RECORD_ID_SIZE] = "store-two";
    fgw_record_sealer_init(&sealer, &ring, OTHER);
    len = seal(&sealer, record);
    assert_int_equal(open_at(&ring, fgw_bytes(record, len), PLACE), FGW_ERR_CORRUPT);
}

static void names_a_newer_version(void **state)
{
    (void)state;
    uint8_t record[256];
    struct fgw_keyring ring = keyring();
    struct fgw_record_sealer sealer;
    struct fgw_record_head head;
    fgw_record_sealer_init(&sealer, &ring, STORE[0]);
    (void)seal(&sealer, record);
    record[8] = 2;
    assert_int_equal(fgw_record_head_decode(fgw_bytes(record, sizeof record), &head),
                     FGW_ERR_CORRUPT);
    fgw_put_u32le(record + 92, fgw_crc32c(0, fgw_bytes(record, 92)));
    assert_int_equal(fgw_record_head_decode(fgw_bytes(record, sizeof record), &head),
                     FGW_ERR_NEWER_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_what_was_sealed),
        cmocka_unit_test(refuses_every_flipped_bit),
        cmocka_unit_test(refuses_another_place_store_or_key),
        cmocka_unit_test(names_a_newer_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
