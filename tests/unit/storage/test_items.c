/* test_items.c: items and index rows there and back, cut anywhere; the ordered row map. */
#include "cmocka_all.h"

#include "base/tlv.h"
#include "storage/rowmap.h"
#include "storage/rows.h"

static struct fgw_item_owner owner(void)
{
    return (struct fgw_item_owner){
        .address = {.bucket_id = "b", .key = FGW_LIT("photos/1.jpg"), .owner_id = "o"},
        .extent = 300,
        .listed = true};
}

static struct fgw_bytes only_item(struct fgw_buf *buf, uint64_t tag)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(fgw_buf_bytes(buf));
    struct fgw_tlv_item item;
    assert_int_equal(fgw_tlv_next(&reader, &item), FGW_OK);
    assert_int_equal(item.tag, tag);
    assert_int_equal(reader.rest.len, 0);
    return item.value;
}

static void expect_same_block(const struct fgw_item_block *a, const struct fgw_item_block *b)
{
    assert_int_equal(a->written, b->written);
    assert_int_equal(a->codec, b->codec);
    assert_memory_equal(a->digest, b->digest, sizeof a->digest);
    assert_int_equal(a->len, b->len);
    assert_int_equal(a->crc32c, b->crc32c);
    assert_int_equal(a->group, b->group);
    assert_int_equal(a->offset, b->offset);
}

static void block_hold_there_and_back(void **state)
{
    (void)state;
    struct fgw_buf buf;
    struct fgw_item_owner in_owner = owner();
    struct fgw_item_owner out_owner;
    struct fgw_item_block in = {.written = true, .codec = 0x55, .digest = "digest", .len = 4096,
                                .crc32c = 0xdeadbeef, .group = 3, .offset = 1u << 31};
    struct fgw_item_block out;
    fgw_buf_init(&buf, 0);
    fgw_item_put_block_hold(&buf, &in, &in_owner);
    struct fgw_bytes value = only_item(&buf, FGW_ITEM_BLOCK_HOLD);
    assert_int_equal(fgw_item_block_hold(value, &out, &out_owner), FGW_OK);
    expect_same_block(&in, &out);
    assert_true(fgw_bytes_eq(out_owner.address.key, in_owner.address.key));
    assert_int_equal(out_owner.extent, 300);
    assert_true(out_owner.listed);
    for (size_t cut = 0; cut < value.len; cut++) {
        assert_int_equal(fgw_item_block_hold(fgw_bytes_sub(value, 0, cut), &out, &out_owner),
                         FGW_ERR_CORRUPT);
    }
    fgw_buf_deinit(&buf);
}

static void slice_there_and_back(void **state)
{
    (void)state;
    struct fgw_buf buf;
    struct fgw_item_slice in = {.list_id = "list", .kind = 1, .first = 2000, .owner = owner()};
    struct fgw_item_slice out;
    struct fgw_item_block blocks[3] = {{.written = true, .len = 1, .group = 1, .offset = 60},
                                       {.len = 2},
                                       {.written = true, .len = 1048576, .group = 2, .offset = 1u << 30}};
    fgw_buf_init(&buf, 0);
    fgw_item_put_slice(&buf, &in, blocks, 3);
    assert_int_equal(fgw_item_slice(only_item(&buf, FGW_ITEM_SLICE), &out), FGW_OK);
    assert_int_equal(out.first, 2000);
    for (int i = 0; i < 3; i++) {
        struct fgw_item_block block;
        assert_int_equal(fgw_item_next_block(&out.blocks, &block), FGW_OK);
        expect_same_block(&block, &blocks[i]);
    }
    struct fgw_item_block none;
    assert_int_equal(fgw_item_next_block(&out.blocks, &none), FGW_ERR_END);
    fgw_buf_deinit(&buf);
}

static void block_row_there_and_back(void **state)
{
    (void)state;
    struct fgw_buf buf;
    struct fgw_block_row in = {.owner_kind = FGW_BLOCK_OWNED, .bad = true, .codec = 0x70,
                               .crc32c = 5, .len = 1048576, .group = 77, .offset = 1ull << 32,
                               .refs = 3, .own_refs = 1, .owner = owner()};
    struct fgw_block_row out;
    fgw_buf_init(&buf, 0);
    fgw_block_row_encode(&buf, &in);
    assert_int_equal(fgw_block_row_decode(fgw_buf_bytes(&buf), &out), FGW_OK);
    assert_int_equal(out.group, 77);
    assert_int_equal(out.refs, 3);
    assert_true(out.bad && out.owner.listed);
    assert_true(fgw_bytes_eq(out.owner.address.key, in.owner.address.key));
    buf.ptr[0] = 2;
    assert_int_equal(fgw_block_row_decode(fgw_buf_bytes(&buf), &out), FGW_ERR_NEWER_VERSION);
    fgw_buf_deinit(&buf);
}

static void rowmap_keeps_order(void **state)
{
    (void)state;
    struct fgw_arena arena;
    struct fgw_rowmap map;
    fgw_arena_init(&arena, 0);
    fgw_rowmap_init(&map, &arena);
    for (unsigned i = 0; i < 5000; i++) {
        uint8_t key[4];
        fgw_put_u32be(key, i * 7919 % 5000);
        fgw_rowmap_put(&map, fgw_bytes(key, 4), fgw_bytes(&i, sizeof i));
        fgw_rowmap_put(&map, fgw_bytes(key, 4), fgw_bytes(key, 4));
    }
    assert_int_equal(map.count, 5000);
    fgw_rowmap_delete(&map, FGW_LIT("\0\0\0\5"));
    uint32_t expected = 0;
    for (const struct fgw_rowmap_row *row = fgw_rowmap_seek(&map, fgw_bytes(NULL, 0)); row != NULL;
         row = row->next[0]) {
        uint8_t key[4];
        fgw_put_u32be(key, expected);
        assert_memory_equal(row->key.ptr, key, 4);
        assert_int_equal(row->deleted, expected == 5);
        expected++;
    }
    assert_int_equal(expected, 5000);
    assert_null(fgw_rowmap_get(&map, FGW_LIT("\0\0\0")));
    assert_non_null(fgw_rowmap_get(&map, FGW_LIT("\0\0\0\7")));
    assert_memory_equal(fgw_rowmap_seek(&map, FGW_LIT("\0\0\0\7\0"))->key.ptr, "\0\0\0\10", 4);
    fgw_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_hold_there_and_back),
        cmocka_unit_test(slice_there_and_back),
        cmocka_unit_test(block_row_there_and_back),
        cmocka_unit_test(rowmap_keeps_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
