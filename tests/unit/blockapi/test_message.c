/* test_message.c: payloads there and back, every shorter form refused. */
#include "cmocka_all.h"

#include "base/check.h"
#include "blockapi/message.h"

static void heads_and_owners(void **state)
{
    (void)state;
    struct fgw_buf buf;
    struct fgw_blockapi_head head = {.epoch = 5, .set = UINT64_MAX - 1, .set_epoch = 3};
    struct fgw_blockapi_owner owner = {.extent = 77, .key = FGW_LIT("a/key")};
    struct fgw_blockapi_head head_back;
    struct fgw_blockapi_owner owner_back;
    memset(head.store_id, 1, sizeof head.store_id);
    memset(owner.bucket_id, 2, sizeof owner.bucket_id);
    memset(owner.owner_id, 3, sizeof owner.owner_id);
    fgw_buf_init(&buf, 0);
    fgw_blockapi_put_head(&buf, &head);
    assert_int_equal(buf.len, FGW_BLOCKAPI_HEAD_SIZE);
    fgw_blockapi_put_owner(&buf, &owner);
    struct fgw_bytes rest = fgw_buf_bytes(&buf);
    assert_int_equal(fgw_blockapi_take_head(&rest, &head_back), FGW_OK);
    assert_memory_equal(&head, &head_back, sizeof head);
    assert_int_equal(fgw_blockapi_take_owner(&rest, &owner_back), FGW_OK);
    assert_int_equal(owner_back.extent, 77);
    assert_true(fgw_bytes_eq(owner_back.key, owner.key));
    assert_int_equal(rest.len, 0);
    for (size_t len = 0; len < buf.len - FGW_BLOCKAPI_HEAD_SIZE; len++) {
        rest = fgw_bytes(buf.ptr + FGW_BLOCKAPI_HEAD_SIZE, len);
        assert_int_equal(fgw_blockapi_take_owner(&rest, &owner_back), FGW_ERR_PARSE);
    }
    for (size_t len = 0; len < FGW_BLOCKAPI_HEAD_SIZE; len++) {
        rest = fgw_bytes(buf.ptr, len);
        assert_int_equal(fgw_blockapi_take_head(&rest, &head_back), FGW_ERR_PARSE);
    }
    /* a key longer than any */
    fgw_put_u16le(buf.ptr + FGW_BLOCKAPI_HEAD_SIZE + 40, 1401);
    assert_int_equal(fgw_buf_reserve(&buf, 2000), FGW_OK);
    rest = fgw_bytes(buf.ptr + FGW_BLOCKAPI_HEAD_SIZE, 42 + 1401);
    assert_int_equal(fgw_blockapi_take_owner(&rest, &owner_back), FGW_ERR_PARSE);
    fgw_buf_deinit(&buf);
}

static void answers(void **state)
{
    (void)state;
    static const enum fgw_err ERRS[] = {
        FGW_OK,          FGW_ERR_NOT_FOUND,   FGW_ERR_NOSPACE,   FGW_ERR_IO,
        FGW_ERR_CORRUPT, FGW_ERR_UNAVAILABLE, FGW_ERR_READ_ONLY, FGW_ERR_CANCELLED,
        FGW_ERR_INTERNAL};
    for (size_t i = 0; i < FGW_COUNT_OF(ERRS); i++) {
        struct fgw_buf buf;
        struct fgw_blockapi_answer back;
        struct fgw_blockapi_answer answer = {
            .err = ERRS[i], .epoch = 9, .text = FGW_LIT("why"), .extra = FGW_LIT("more")};
        fgw_buf_init(&buf, 0);
        fgw_blockapi_put_answer(&buf, &answer);
        assert_int_equal(fgw_blockapi_take_answer(fgw_buf_bytes(&buf), &back), FGW_OK);
        assert_int_equal(back.err, ERRS[i]);
        assert_true(fgw_bytes_eq_str(back.text, "why"));
        assert_true(fgw_bytes_eq_str(back.extra, "more"));
        for (size_t len = 0; len < buf.len; len++) {
            assert_int_equal(fgw_blockapi_take_answer(fgw_bytes(buf.ptr, len), &back),
                             FGW_ERR_PARSE);
        }
        buf.ptr[0] = 200; /* a status of a later version is a failure all the same */
        assert_int_equal(fgw_blockapi_take_answer(fgw_buf_bytes(&buf), &back), FGW_OK);
        assert_int_equal(back.err, FGW_ERR_INTERNAL);
        fgw_buf_deinit(&buf);
    }
}

static void blocks(void **state)
{
    (void)state;
    struct fgw_buf buf;
    struct fgw_bytes bytes = FGW_LIT("block");
    struct fgw_cid cid = fgw_cid_of(FGW_CODEC_RAW, bytes);
    struct fgw_blockapi_block block;
    fgw_buf_init(&buf, 0);
    fgw_blockapi_put_block_head(&buf, &cid, 0x11223344);
    (void)fgw_buf_append(&buf, bytes);
    struct fgw_bytes rest = fgw_buf_bytes(&buf);
    assert_int_equal(fgw_blockapi_take_block(&rest, &block), FGW_OK);
    assert_true(fgw_cid_eq(&block.cid, &cid));
    assert_int_equal(block.crc32c, 0x11223344);
    assert_true(fgw_bytes_eq(block.bytes, bytes));
    buf.ptr[0] = 9; /* no CID of ours */
    rest = fgw_buf_bytes(&buf);
    assert_int_equal(fgw_blockapi_take_block(&rest, &block), FGW_ERR_PARSE);
    fgw_buf_deinit(&buf);
}

static void data_of_version(uint8_t version, size_t head_size)
{
    struct fgw_buf buf;
    struct fgw_cid cid = fgw_cid_of(FGW_CODEC_RAW, FGW_LIT("leaf"));
    struct fgw_blockapi_data sent = {
        .offset = 1ULL << 40, .crc32c = 5, .digest = fgw_cid_digest(&cid)};
    struct fgw_blockapi_data came;
    uint8_t head[FGW_BLOCKAPI_DATA_HEAD_MAX];
    fgw_buf_init(&buf, 0);
    assert_int_equal(fgw_blockapi_data_head_size(version), head_size);
    fgw_blockapi_data_head(version, &sent, head);
    (void)fgw_buf_append(&buf, fgw_bytes(head, head_size));
    assert_int_equal(fgw_blockapi_take_data(version, fgw_buf_bytes(&buf), &came), FGW_ERR_PARSE);
    (void)fgw_buf_append_byte(&buf, 1);
    assert_int_equal(fgw_blockapi_take_data(version, fgw_buf_bytes(&buf), &came), FGW_OK);
    assert_true(came.offset == 1ULL << 40 && came.crc32c == 5 && came.bytes.len == 1);
    if (version == 1) {
        assert_null(came.digest);
    } else {
        assert_memory_equal(came.digest, fgw_cid_digest(&cid), FGW_SHA256_SIZE);
    }
    fgw_buf_deinit(&buf);
}

static void data_of_both_versions(void **state)
{
    (void)state;
    data_of_version(1, 16);
    data_of_version(2, 48);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_and_owners),
        cmocka_unit_test(answers),
        cmocka_unit_test(blocks),
        cmocka_unit_test(data_of_both_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
