/* fuzz_car.c: CAR files through the reader, whole and in pieces: both must say the same. The first
 * byte chooses the options and the size of the pieces. */
#include "base/check.h"
#include "cid/car.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    enum fgw_err end;
    size_t items;
    uint64_t block_bytes;
    uint64_t offset;
};

static void count_item(struct outcome *outcome, const struct fgw_car_item *item)
{
    outcome->items++;
    outcome->block_bytes += item->block.len;
    struct fgw_bytes roots = item->header.roots;
    struct fgw_cid_view root;
    size_t count = 0;
    while (fgw_car_next_root(&roots, &root) == FGW_OK) {
        count++;
    }
    FGW_CHECK(count == item->header.root_count);
}

static struct outcome read_file(struct fgw_bytes file, size_t step,
                                const struct fgw_car_reader_options *options)
{
    struct outcome outcome = {0};
    struct fgw_car_reader reader;
    fgw_car_reader_init(&reader, options);
    enum fgw_err err = FGW_ERR_AGAIN;
    for (size_t at = 0; err == FGW_ERR_AGAIN && at < file.len; at += step) {
        struct fgw_bytes input = fgw_bytes_sub(file, at, step);
        struct fgw_car_item item;
        while ((err = fgw_car_reader_next(&reader, &input, &item)) == FGW_OK) {
            count_item(&outcome, &item);
        }
        FGW_CHECK(err != FGW_ERR_AGAIN || input.len == 0);
    }
    outcome.end = fgw_car_reader_finish(&reader);
    outcome.offset = reader.offset;
    fgw_car_reader_deinit(&reader);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct fgw_car_reader_options options = {.zero_length_ends = (data[0] & 1) != 0,
                                             .skip_verify = (data[0] & 2) != 0};
    size_t step = 1 + (size_t)(data[0] >> 2);
    struct fgw_bytes file = fgw_bytes(data + 1, size - 1);
    struct outcome whole = read_file(file, SIZE_MAX / 2, &options);
    struct outcome pieces = read_file(file, step, &options);
    FGW_CHECK(whole.end == pieces.end && whole.items == pieces.items);
    FGW_CHECK(whole.block_bytes == pieces.block_bytes && whole.offset == pieces.offset);
    struct fgw_car_section section;
    if (fgw_car_section_decode(file, &section) == FGW_OK) {
        FGW_CHECK(section.head_size <= file.len && section.block_size <= FGW_CAR_BLOCK_MAX);
    }
    return 0;
}
