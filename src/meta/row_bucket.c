/* row_bucket.c: bucket rows. See row.h. */
#include "meta/row_internal.h"

enum bucket_tag {
    BUCKET_ID = 2,
    BUCKET_OWNER_ID = 4,
    BUCKET_OWNER_NAME = 6,
    BUCKET_REGION = 8,
    BUCKET_CREATED = 10,
    BUCKET_VERSIONING = 12,
    BUCKET_ACL = 14,
    BUCKET_LOCK = 16,
    BUCKET_SHARDS = 18,
    BUCKET_REPLICAS = 20,
    BUCKET_DOCUMENT = 22,
    BUCKET_REV = 24,
    BUCKET_QUOTA_BYTES = 26,
    BUCKET_QUOTA_OBJECTS = 28
};

void fgw_row_encode_bucket(struct fgw_buf *out, const struct fgw_bucket *bucket)
{
    fgw_row_put_id(out, BUCKET_ID, &bucket->id);
    fgw_tlv_put_nonempty(out, BUCKET_OWNER_ID, bucket->owner_id);
    fgw_tlv_put_nonempty(out, BUCKET_OWNER_NAME, bucket->owner_name);
    fgw_tlv_put_nonempty(out, BUCKET_REGION, bucket->region);
    fgw_tlv_put_u64(out, BUCKET_CREATED, (uint64_t)bucket->created_ms);
    fgw_tlv_put_u64(out, BUCKET_VERSIONING, bucket->versioning);
    fgw_tlv_put_u64(out, BUCKET_ACL, bucket->acl);
    fgw_tlv_put_u64(out, BUCKET_LOCK, bucket->object_lock);
    fgw_tlv_put_u64(out, BUCKET_SHARDS, bucket->shards);
    fgw_tlv_put_u64(out, BUCKET_REPLICAS, bucket->replicas);
    for (size_t i = 0; i < bucket->document_count; i++) {
        fgw_row_put_pair(out, BUCKET_DOCUMENT, &bucket->documents[i]);
    }
    fgw_row_put_id(out, BUCKET_REV, &bucket->rev);
    if (bucket->quota_bytes > 0) {
        fgw_tlv_put_u64(out, BUCKET_QUOTA_BYTES, bucket->quota_bytes);
    }
    if (bucket->quota_objects > 0) {
        fgw_tlv_put_u64(out, BUCKET_QUOTA_OBJECTS, bucket->quota_objects);
    }
    (void)fgw_buf_append(out, bucket->unknown);
}

struct bucket_decoder {
    struct fgw_bucket bucket;
    struct fgw_meta_pair *documents;
    uint8_t *unknown;
};

static enum fgw_err bucket_number(struct bucket_decoder *d, const struct fgw_tlv_item *item)
{
    uint64_t number = 0;
    enum fgw_err err = fgw_tlv_u64(item->value, &number);
    if (err != FGW_OK) {
        return err;
    }
    switch (item->tag) {
    case BUCKET_CREATED:
        d->bucket.created_ms = (int64_t)number;
        break;
    case BUCKET_VERSIONING:
        d->bucket.versioning = (enum fgw_versioning)number;
        break;
    case BUCKET_ACL:
        d->bucket.acl = (enum fgw_acl)number;
        break;
    case BUCKET_LOCK:
        d->bucket.object_lock = number != 0;
        break;
    case BUCKET_SHARDS:
        d->bucket.shards = (unsigned)number;
        break;
    case BUCKET_QUOTA_BYTES:
        d->bucket.quota_bytes = number;
        break;
    case BUCKET_QUOTA_OBJECTS:
        d->bucket.quota_objects = number;
        break;
    default:
        d->bucket.replicas = (unsigned)number;
        break;
    }
    return FGW_OK;
}

static enum fgw_err bucket_item(struct bucket_decoder *d, const struct fgw_tlv_item *item)
{
    switch (item->tag) {
    case BUCKET_ID:
        return fgw_row_get_id(item->value, &d->bucket.id);
    case BUCKET_REV:
        return fgw_row_get_id(item->value, &d->bucket.rev);
    case BUCKET_OWNER_ID:
        d->bucket.owner_id = item->value;
        return FGW_OK;
    case BUCKET_OWNER_NAME:
        d->bucket.owner_name = item->value;
        return FGW_OK;
    case BUCKET_REGION:
        d->bucket.region = item->value;
        return FGW_OK;
    case BUCKET_CREATED:
    case BUCKET_VERSIONING:
    case BUCKET_ACL:
    case BUCKET_LOCK:
    case BUCKET_SHARDS:
    case BUCKET_REPLICAS:
    case BUCKET_QUOTA_BYTES:
    case BUCKET_QUOTA_OBJECTS:
        return bucket_number(d, item);
    case BUCKET_DOCUMENT:
        return fgw_row_get_pair(item->value, &d->documents[d->bucket.document_count++]);
    default:
        if (fgw_tlv_critical(item->tag)) {
            return FGW_ERR_NEWER_VERSION;
        }
        memcpy(d->unknown + d->bucket.unknown.len, item->raw.ptr, item->raw.len);
        d->bucket.unknown.len += item->raw.len;
        return FGW_OK;
    }
}

enum fgw_err fgw_row_decode_bucket(struct fgw_arena *arena, struct fgw_bytes name,
                                   struct fgw_bytes row, struct fgw_bucket *out_bucket)
{
    struct bucket_decoder d = {.bucket.name = name};
    struct fgw_tlv_reader reader = fgw_tlv_reader(row);
    struct fgw_tlv_item item;
    size_t documents = 0;
    enum fgw_err err;
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        documents += item.tag == BUCKET_DOCUMENT;
    }
    d.documents = fgw_arena_alloc(arena, documents * sizeof *d.documents);
    d.unknown = fgw_arena_alloc(arena, row.len);
    d.bucket.documents = d.documents;
    d.bucket.unknown = fgw_bytes(d.unknown, 0);
    reader = fgw_tlv_reader(row);
    while (err == FGW_ERR_END && (err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        err = bucket_item(&d, &item);
        err = err == FGW_OK ? FGW_ERR_END : err;
    }
    if (err != FGW_ERR_END) {
        return err;
    }
    *out_bucket = d.bucket;
    return FGW_OK;
}
