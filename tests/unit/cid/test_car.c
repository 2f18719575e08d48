/* test_car.c: CAR header, sections and the reader, whole and one byte at a time. */
#include "cmocka_all.h"

#include <fcntl.h>

#include "base/check.h"
#include "base/encode.h"
#include "base/fs.h"
#include "cid/car.h"

static const char HELLO_CAR[] =
    "3aa265726f6f747381d82a58250001551220b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2"
    "efcde96776657273696f6e01"
    "2f01551220b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde968656c6c6f20776f726c"
    "64";
enum { HELLO_CAR_SIZE = 107 };

static void hello_car(uint8_t out[HELLO_CAR_SIZE])
{
    assert_int_equal(strlen(HELLO_CAR), 2 * HELLO_CAR_SIZE);
    assert_int_equal(fgw_hex_decode(fgw_bytes_str(HELLO_CAR), out), FGW_OK);
}

static void encode_hello(void **state)
{
    (void)state;
    uint8_t expected[HELLO_CAR_SIZE];
    hello_car(expected);
    struct fgw_bytes block = FGW_LIT("hello world");
    struct fgw_cid cid = fgw_cid_of(FGW_CODEC_RAW, block);
    uint8_t head[FGW_CAR_SECTION_HEAD_MAX];
    struct fgw_buf out;
    fgw_buf_init(&out, 0);
    uint8_t header[FGW_CAR_HEADER_SIZE];
    fgw_car_header_encode(&cid, header);
    assert_int_equal(fgw_buf_append(&out, fgw_bytes(header, sizeof header)), FGW_OK);
    size_t head_size = fgw_car_section_head_encode(&cid, block.len, head);
    assert_int_equal(fgw_buf_append(&out, fgw_bytes(head, head_size)), FGW_OK);
    assert_int_equal(fgw_buf_append(&out, block), FGW_OK);
    assert_int_equal(out.len, HELLO_CAR_SIZE);
    assert_memory_equal(out.ptr, expected, HELLO_CAR_SIZE);
    assert_int_equal(fgw_car_section_size(block.len), head_size + block.len);
    fgw_buf_deinit(&out);
}

static void section_sizes(void **state)
{
    (void)state;
    struct fgw_cid cid = fgw_cid_of(FGW_CODEC_RAW, FGW_LIT("x"));
    static const size_t SIZES[] = {0, 1, 91, 92, 16347, 16348, 1 << 20, FGW_CAR_BLOCK_MAX};
    for (size_t i = 0; i < FGW_COUNT_OF(SIZES); i++) {
        uint8_t head[FGW_CAR_SECTION_HEAD_MAX];
        size_t head_size = fgw_car_section_head_encode(&cid, SIZES[i], head);
        struct fgw_car_section section;
        for (size_t len = 0; len < head_size; len++) {
            assert_int_equal(fgw_car_section_decode(fgw_bytes(head, len), &section), FGW_ERR_END);
        }
        assert_int_equal(fgw_car_section_decode(fgw_bytes(head, head_size), &section), FGW_OK);
        assert_int_equal(section.head_size, head_size);
        assert_int_equal(section.block_size, SIZES[i]);
        assert_int_equal(fgw_car_section_size(SIZES[i]), head_size + SIZES[i]);
    }
    /* a 1 MiB block costs 39 bytes */
    assert_int_equal(fgw_car_section_size(1 << 20), (1 << 20) + 39);
}

static void placeholder_root_reads_back(void **state)
{
    (void)state;
    uint8_t bytes[FGW_CAR_HEADER_SIZE];
    struct fgw_cid root = fgw_car_placeholder_root();
    fgw_car_header_encode(&root, bytes);
    struct fgw_car_header header;
    assert_int_equal(fgw_car_header_decode(fgw_bytes(bytes + 1, sizeof bytes - 1), &header),
                     FGW_OK);
    assert_int_equal(header.root_count, 1);
    struct fgw_cid_view view;
    assert_int_equal(fgw_car_next_root(&header.roots, &view), FGW_OK);
    assert_true(view.hash == FGW_MULTIHASH_IDENTITY && view.encoded.len == FGW_CID_SIZE);
    assert_int_equal(fgw_car_next_root(&header.roots, &view), FGW_ERR_END);
}

/* Feeds `bytes` in pieces of `step`; counts blocks; the first answer that is neither OK nor AGAIN,
 * or that of finish. */
static enum fgw_err read_all(struct fgw_bytes bytes, size_t step,
                             const struct fgw_car_reader_options *options, size_t *out_blocks)
{
    struct fgw_car_reader reader;
    fgw_car_reader_init(&reader, options);
    enum fgw_err err = FGW_ERR_AGAIN;
    *out_blocks = 0;
    for (size_t at = 0; err == FGW_ERR_AGAIN && at < bytes.len; at += step) {
        /* a heap copy of each piece, so that reading past it is seen */
        struct fgw_bytes piece = fgw_bytes_sub(bytes, at, step);
        uint8_t *copy = fgw_xmalloc(piece.len);
        memcpy(copy, piece.ptr, piece.len);
        struct fgw_bytes input = fgw_bytes(copy, piece.len);
        struct fgw_car_item item;
        while ((err = fgw_car_reader_next(&reader, &input, &item)) == FGW_OK) {
            *out_blocks += item.kind == FGW_CAR_ITEM_BLOCK;
        }
        fgw_xfree(copy);
    }
    enum fgw_err end = fgw_car_reader_finish(&reader);
    fgw_car_reader_deinit(&reader);
    return end;
}

static void read_in_any_pieces(void **state)
{
    (void)state;
    uint8_t car[HELLO_CAR_SIZE];
    hello_car(car);
    for (size_t step = 1; step <= sizeof car; step++) {
        size_t blocks;
        assert_int_equal(read_all(fgw_bytes(car, sizeof car), step, NULL, &blocks), FGW_OK);
        assert_int_equal(blocks, 1);
    }
}

static void every_cut_is_noticed(void **state)
{
    (void)state;
    uint8_t car[HELLO_CAR_SIZE];
    hello_car(car);
    for (size_t len = 0; len < sizeof car; len++) {
        size_t blocks;
        enum fgw_err expected = len == FGW_CAR_HEADER_SIZE ? FGW_OK : FGW_ERR_CORRUPT;
        assert_int_equal(read_all(fgw_bytes(car, len), 7, NULL, &blocks), expected);
        assert_int_equal(blocks, 0);
    }
}

/* No bit of a CAR can change without the reader refusing it, but for the root's and the block's
 * codec, which no digest covers. */
static void every_bit_is_noticed(void **state)
{
    (void)state;
    enum { ROOT_FROM = 14, ROOT_END = ROOT_FROM + FGW_CID_SIZE, CODEC = FGW_CAR_HEADER_SIZE + 2 };
    for (size_t bit = 0; bit < 8 * HELLO_CAR_SIZE; bit++) {
        if ((bit / 8 >= ROOT_FROM && bit / 8 < ROOT_END) || bit / 8 == CODEC) {
            continue;
        }
        uint8_t car[HELLO_CAR_SIZE];
        hello_car(car);
        car[bit / 8] ^= (uint8_t)(1U << bit % 8);
        size_t blocks;
        assert_int_not_equal(read_all(fgw_bytes(car, sizeof car), 13, NULL, &blocks), FGW_OK);
        assert_int_equal(blocks, 0);
    }
}

static void fixture_with_all_kinds(void **state)
{
    (void)state;
    /* section offsets of carv1-basic.json */
    static const uint64_t OFFSETS[] = {100, 192, 325, 366, 496, 537, 619, 660};
    struct fgw_buf car;
    fgw_buf_init(&car, 4096);
    assert_int_equal(fgw_fs_read_file(AT_FDCWD, FGW_VECTORS_DIR "/car/carv1-basic.car", &car),
                     FGW_OK);
    struct fgw_car_reader reader;
    fgw_car_reader_init(&reader, NULL);
    struct fgw_bytes input = fgw_buf_bytes(&car);
    struct fgw_car_item item;
    assert_int_equal(fgw_car_reader_next(&reader, &input, &item), FGW_OK);
    assert_int_equal(item.kind, FGW_CAR_ITEM_HEADER);
    assert_int_equal(item.header.root_count, 2);
    for (size_t i = 0; i < FGW_COUNT_OF(OFFSETS); i++) {
        assert_int_equal(fgw_car_reader_next(&reader, &input, &item), FGW_OK);
        assert_int_equal(item.kind, FGW_CAR_ITEM_BLOCK);
        assert_true(item.offset == OFFSETS[i]);
    }
    assert_int_equal(fgw_car_reader_next(&reader, &input, &item), FGW_ERR_AGAIN);
    assert_int_equal(fgw_car_reader_finish(&reader), FGW_OK);
    fgw_car_reader_deinit(&reader);
    size_t blocks;
    assert_int_equal(read_all(fgw_buf_bytes(&car), 1, NULL, &blocks), FGW_OK);
    assert_int_equal(blocks, FGW_COUNT_OF(OFFSETS));
    fgw_buf_deinit(&car);
}

static void zero_length_ends_only_when_told(void **state)
{
    (void)state;
    uint8_t car[HELLO_CAR_SIZE + 20] = {0};
    hello_car(car);
    size_t blocks;
    struct fgw_car_reader_options padded = {.zero_length_ends = true};
    assert_int_equal(read_all(fgw_bytes(car, sizeof car), 5, &padded, &blocks), FGW_OK);
    assert_int_equal(blocks, 1);
    assert_int_equal(read_all(fgw_bytes(car, sizeof car), 5, NULL, &blocks), FGW_ERR_CORRUPT);
    assert_int_equal(blocks, 1);
    /* not in the place of the header */
    uint8_t zero = 0;
    assert_int_equal(read_all(fgw_bytes(&zero, 1), 1, &padded, &blocks), FGW_ERR_CORRUPT);
}

static void hostile_lengths(void **state)
{
    (void)state;
    uint8_t car[HELLO_CAR_SIZE];
    hello_car(car);
    static const struct {
        const char *varint;
        enum fgw_err err;
    } CASES[] = {
        {"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", FGW_ERR_TOO_LARGE},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff", FGW_ERR_CORRUPT},
        {"\xa1\x81\x80\x01", FGW_ERR_TOO_LARGE}, /* FGW_CAR_SECTION_MAX + 1 */
        {"\xaf\x80", FGW_ERR_CORRUPT},           /* cut off */
    };
    for (size_t i = 0; i < FGW_COUNT_OF(CASES); i++) {
        uint8_t bytes[FGW_CAR_HEADER_SIZE + 10];
        memcpy(bytes, car, FGW_CAR_HEADER_SIZE);
        size_t len = strlen(CASES[i].varint);
        memcpy(bytes + FGW_CAR_HEADER_SIZE, CASES[i].varint, len);
        size_t blocks;
        assert_int_equal(read_all(fgw_bytes(bytes, FGW_CAR_HEADER_SIZE + len), 3, NULL, &blocks),
                         CASES[i].err);
    }
    /* a block just above the limit is refused although its section is not too long */
    struct fgw_cid cid = fgw_cid_of(FGW_CODEC_RAW, FGW_LIT("x"));
    uint8_t head[FGW_UVARINT_MAX + FGW_CID_SIZE];
    size_t varint_len = fgw_uvarint_encode(FGW_CID_SIZE + FGW_CAR_BLOCK_MAX + 1, head);
    memcpy(head + varint_len, cid.bytes, FGW_CID_SIZE);
    struct fgw_car_section section;
    assert_int_equal(fgw_car_section_decode(fgw_bytes(head, varint_len + FGW_CID_SIZE), &section),
                     FGW_ERR_TOO_LARGE);
}

static void headers_refused(void **state)
{
    (void)state;
    static const struct {
        struct fgw_bytes cbor;
        enum fgw_err err;
    } CASES[] = {
        /* a CARv2's pragma */
        {{(const uint8_t *)"\xa1\x67version\x02", 10}, FGW_ERR_NOT_IMPLEMENTED},
        {{(const uint8_t *)"\xa1\x67version\x01", 10}, FGW_ERR_CORRUPT},
        {{(const uint8_t *)"\xa1\x65roots\x80", 8}, FGW_ERR_CORRUPT},
        {{(const uint8_t *)"\xa2\x65roots\x80\x65roots\x80", 15}, FGW_ERR_CORRUPT},
        {{(const uint8_t *)"\xa2\x65roots\x80\x67version\x01\x00", 18}, FGW_ERR_CORRUPT},
        {{(const uint8_t *)"\xa2\x65roots\x80\x67version\x18\x01", 18}, FGW_ERR_CORRUPT},
        {{(const uint8_t *)"\xa2\x65roots\x9b\xff\xff\xff\xff\xff\xff\xff\xff", 16},
         FGW_ERR_CORRUPT},
        {{(const uint8_t *)"\xbf\x65roots\x80\x67version\x01\xff", 18}, FGW_ERR_CORRUPT},
        {{(const uint8_t *)"\x80", 1}, FGW_ERR_CORRUPT},
        {{NULL, 0}, FGW_ERR_CORRUPT},
        /* accepted: no roots, either order of keys */
        {{(const uint8_t *)"\xa2\x65roots\x80\x67version\x01", 17}, FGW_OK},
        {{(const uint8_t *)"\xa2\x67version\x01\x65roots\x80", 17}, FGW_OK},
    };
    for (size_t i = 0; i < FGW_COUNT_OF(CASES); i++) {
        struct fgw_car_header header;
        assert_int_equal(fgw_car_header_decode(CASES[i].cbor, &header), CASES[i].err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encode_hello),
        cmocka_unit_test(section_sizes),
        cmocka_unit_test(placeholder_root_reads_back),
        cmocka_unit_test(read_in_any_pieces),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(every_bit_is_noticed),
        cmocka_unit_test(fixture_with_all_kinds),
        cmocka_unit_test(zero_length_ends_only_when_told),
        cmocka_unit_test(hostile_lengths),
        cmocka_unit_test(headers_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
