/* car_reader.c: the incremental CAR reader; see car.h.
 *
 * A unit is a length varint and as many bytes (the header, then sections). A unit that lies whole
 * in the input is handed out in place; else it is gathered in `partial`, which grows only with
 * bytes that have come, so that a hostile length costs nothing.
 */
#include "base/encode.h"
#include "cid/car.h"

void fgw_car_reader_init(struct fgw_car_reader *reader,
                         const struct fgw_car_reader_options *options)
{
    *reader = (struct fgw_car_reader){0};
    if (options != NULL) {
        reader->options = *options;
    }
    fgw_buf_init(&reader->partial, FGW_UVARINT_MAX + FGW_CAR_SECTION_MAX);
}

void fgw_car_reader_deinit(struct fgw_car_reader *reader)
{
    fgw_buf_deinit(&reader->partial);
}

/* The size of the unit at the front of `bytes`, its varint included. */
static enum fgw_err unit_size(const struct fgw_car_reader *reader, struct fgw_bytes bytes,
                              size_t *out_varint_len, size_t *out_size)
{
    uint64_t len = 0;
    enum fgw_err err = fgw_uvarint_decode(bytes, &len, out_varint_len);
    if (err != FGW_OK) {
        return err == FGW_ERR_END ? err : FGW_ERR_CORRUPT;
    }
    if (len == 0) {
        *out_size = *out_varint_len;
        return FGW_OK;
    }
    if (len > (reader->header_seen ? FGW_CAR_SECTION_MAX : FGW_CAR_HEADER_MAX)) {
        return FGW_ERR_TOO_LARGE;
    }
    *out_size = *out_varint_len + (size_t)len;
    return FGW_OK;
}

/* FGW_OK with a whole unit in *out_unit, taken off the input. */
static enum fgw_err take_unit(struct fgw_car_reader *reader, struct fgw_bytes *input,
                              struct fgw_bytes *out_unit, size_t *out_varint_len)
{
    for (;;) {
        struct fgw_bytes at_hand =
            reader->partial.len > 0 ? fgw_buf_bytes(&reader->partial) : *input;
        size_t size = 0;
        enum fgw_err err = unit_size(reader, at_hand, out_varint_len, &size);
        if (err != FGW_OK && err != FGW_ERR_END) {
            return err;
        }
        bool sized = err == FGW_OK;
        if (sized && at_hand.len >= size) {
            *out_unit = fgw_bytes_sub(at_hand, 0, size);
            if (reader->partial.len == 0) {
                *input = fgw_bytes_sub(*input, size, SIZE_MAX);
            } else {
                reader->partial_used = true;
            }
            return FGW_OK;
        }
        if (input->len == 0) {
            return FGW_ERR_AGAIN;
        }
        /* byte by byte until the length is known: not one byte of the next unit may come in */
        struct fgw_bytes more = fgw_bytes_sub(*input, 0, sized ? size - reader->partial.len : 1);
        err = fgw_buf_append(&reader->partial, more);
        if (err != FGW_OK) {
            return err;
        }
        *input = fgw_bytes_sub(*input, more.len, SIZE_MAX);
    }
}

static enum fgw_err section_item(const struct fgw_car_reader *reader, struct fgw_bytes unit,
                                 struct fgw_car_item *item)
{
    struct fgw_car_section section;
    enum fgw_err err = fgw_car_section_decode(unit, &section);
    if (err != FGW_OK) {
        return err == FGW_ERR_TOO_LARGE ? err : FGW_ERR_CORRUPT;
    }
    item->kind = FGW_CAR_ITEM_BLOCK;
    item->cid = section.cid;
    item->block = fgw_bytes_sub(unit, section.head_size, section.block_size);
    return reader->options.skip_verify ? FGW_OK : fgw_cid_verify(&item->cid, item->block);
}

static enum fgw_err next_item(struct fgw_car_reader *reader, struct fgw_bytes *input,
                              struct fgw_car_item *item)
{
    struct fgw_bytes unit;
    size_t varint_len = 0;
    enum fgw_err err = take_unit(reader, input, &unit, &varint_len);
    if (err != FGW_OK) {
        return err;
    }
    if (unit.len == varint_len) {
        bool end_mark = reader->header_seen && reader->options.zero_length_ends;
        return end_mark ? FGW_ERR_END : FGW_ERR_CORRUPT;
    }
    item->offset = reader->offset;
    if (reader->header_seen) {
        err = section_item(reader, unit, item);
    } else {
        item->kind = FGW_CAR_ITEM_HEADER;
        err = fgw_car_header_decode(fgw_bytes_sub(unit, varint_len, SIZE_MAX), &item->header);
    }
    if (err == FGW_OK) {
        reader->header_seen = true;
        reader->offset += unit.len;
    }
    return err;
}

enum fgw_err fgw_car_reader_next(struct fgw_car_reader *reader, struct fgw_bytes *input,
                                 struct fgw_car_item *out_item)
{
    if (reader->stop != FGW_OK) {
        return reader->stop;
    }
    if (reader->partial_used) {
        fgw_buf_clear(&reader->partial);
        reader->partial_used = false;
    }
    struct fgw_car_item item = {0};
    enum fgw_err err = next_item(reader, input, &item);
    if (err == FGW_OK) {
        *out_item = item;
    } else if (err != FGW_ERR_AGAIN) {
        reader->stop = err;
    }
    return err;
}

enum fgw_err fgw_car_reader_finish(const struct fgw_car_reader *reader)
{
    if (reader->stop != FGW_OK) {
        return reader->stop == FGW_ERR_END ? FGW_OK : reader->stop;
    }
    bool inside = reader->partial.len > 0 && !reader->partial_used;
    return inside || !reader->header_seen ? FGW_ERR_CORRUPT : FGW_OK;
}
