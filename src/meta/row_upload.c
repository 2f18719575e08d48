/* row_upload.c: rows of multipart uploads. See row.h. */
#include "meta/row_internal.h"

enum upload_tag { UPLOAD_BUCKET_ID = 2, UPLOAD_BUCKET_NAME = 4, UPLOAD_KEY = 6, UPLOAD_CREATED = 8,
                  UPLOAD_OBJECT = 10, UPLOAD_ALGORITHM = 12, UPLOAD_TYPE = 14, UPLOAD_REV = 16,
                  UPLOAD_COMPLETED = 18, UPLOAD_ANSWER_VERSION = 20, UPLOAD_ANSWER_FLAGS = 22,
                  UPLOAD_ANSWER_MTIME = 24, UPLOAD_ANSWER_ETAG = 26, UPLOAD_ANSWER_CHECKSUM = 28 };

void fgw_row_encode_upload(struct fgw_buf *out, const struct fgw_upload *upload)
{
    struct fgw_buf object;
    fgw_buf_init(&object, 0);
    fgw_row_encode_object(&object, &upload->object, NULL);
    fgw_row_put_id(out, UPLOAD_BUCKET_ID, &upload->bucket_id);
    fgw_tlv_put(out, UPLOAD_BUCKET_NAME, upload->bucket_name);
    fgw_tlv_put(out, UPLOAD_KEY, upload->key);
    fgw_tlv_put_u64(out, UPLOAD_CREATED, (uint64_t)upload->created_ms);
    fgw_tlv_put(out, UPLOAD_OBJECT, fgw_buf_bytes(&object));
    fgw_tlv_put_u64(out, UPLOAD_ALGORITHM, upload->checksum_algorithm);
    fgw_tlv_put_u64(out, UPLOAD_TYPE, upload->checksum_type);
    fgw_row_put_id(out, UPLOAD_REV, &upload->rev);
    if (upload->completed) {
        fgw_tlv_put_u64(out, UPLOAD_COMPLETED, 1);
        fgw_row_put_id(out, UPLOAD_ANSWER_VERSION, &upload->answer.version_id);
        fgw_tlv_put_u64(out, UPLOAD_ANSWER_FLAGS, upload->answer.is_null);
        fgw_tlv_put_u64(out, UPLOAD_ANSWER_MTIME, (uint64_t)upload->answer.mtime_ms);
        fgw_tlv_put(out, UPLOAD_ANSWER_ETAG, upload->answer_etag);
        fgw_row_put_checksum(out, UPLOAD_ANSWER_CHECKSUM, &upload->answer_checksum);
    }
    fgw_buf_deinit(&object);
}

static enum fgw_err upload_number(struct fgw_upload *upload, const struct fgw_tlv_item *item)
{
    uint64_t number = 0;
    enum fgw_err err = fgw_tlv_u64(item->value, &number);
    if (err != FGW_OK) {
        return err;
    }
    switch (item->tag) {
    case UPLOAD_CREATED:
        upload->created_ms = (int64_t)number;
        break;
    case UPLOAD_ALGORITHM:
        upload->checksum_algorithm = (enum fgw_checksum)number;
        break;
    case UPLOAD_TYPE:
        upload->checksum_type = (enum fgw_checksum_type)number;
        break;
    case UPLOAD_COMPLETED:
        upload->completed = number != 0;
        break;
    case UPLOAD_ANSWER_FLAGS:
        upload->answer.is_null = (number & 1) != 0;
        break;
    default:
        upload->answer.mtime_ms = (int64_t)number;
        break;
    }
    return FGW_OK;
}

static enum fgw_err upload_item(struct fgw_arena *arena, struct fgw_upload *upload,
                                const struct fgw_tlv_item *item)
{
    switch (item->tag) {
    case UPLOAD_BUCKET_ID:
        return fgw_row_get_id(item->value, &upload->bucket_id);
    case UPLOAD_BUCKET_NAME:
        upload->bucket_name = item->value;
        return FGW_OK;
    case UPLOAD_KEY:
        upload->key = item->value;
        return FGW_OK;
    case UPLOAD_OBJECT:
        return fgw_row_decode_object(arena, upload->key, item->value, FGW_ROW_FULL,
                                     &upload->object, NULL);
    case UPLOAD_REV:
        return fgw_row_get_id(item->value, &upload->rev);
    case UPLOAD_ANSWER_VERSION:
        return fgw_row_get_id(item->value, &upload->answer.version_id);
    case UPLOAD_ANSWER_ETAG:
        upload->answer_etag = item->value;
        return FGW_OK;
    case UPLOAD_ANSWER_CHECKSUM:
        return fgw_row_get_checksum(item->value, &upload->answer_checksum);
    case UPLOAD_CREATED:
    case UPLOAD_ALGORITHM:
    case UPLOAD_TYPE:
    case UPLOAD_COMPLETED:
    case UPLOAD_ANSWER_FLAGS:
    case UPLOAD_ANSWER_MTIME:
        return upload_number(upload, item);
    default:
        return fgw_tlv_critical(item->tag) ? FGW_ERR_NEWER_VERSION : FGW_OK;
    }
}

enum fgw_err fgw_row_decode_upload(struct fgw_arena *arena, const struct fgw_id *id,
                                   struct fgw_bytes row, struct fgw_upload *out_upload)
{
    struct fgw_upload upload = {.id = *id};
    struct fgw_tlv_reader reader = fgw_tlv_reader(row);
    struct fgw_tlv_item item;
    enum fgw_err err;
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        err = upload_item(arena, &upload, &item);
        if (err != FGW_OK) {
            return err;
        }
    }
    if (err != FGW_ERR_END) {
        return err;
    }
    *out_upload = upload;
    return FGW_OK;
}
