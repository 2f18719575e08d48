/* sets.c: rows of `sets`: who is in a replica set, who joins it, who leaves (docs/formats/
 * cluster-tables.md). Changed only by one conditional write that names the epoch it replaces, so
 * that of two who decide at the same time one finds out. */
#include "base/tlv.h"
#include "cluster/cluster_internal.h"

enum { TAG_MEMBER = 1, TAG_JOINING = 3, TAG_LEAVING = 4, TAG_WANTED = 6, DATA_MAX = 64 * 1024 };

static enum fgw_err add_member(struct cluster_set_row *row, const struct fgw_tlv_item *item)
{
    unsigned at = row->count + row->joining;
    if (item->value.len != FGW_STORAGE_ID_SIZE || at == FGW_PLACEMENT_MEMBERS_MAX ||
        (item->tag == TAG_MEMBER && row->joining > 0)) {
        return FGW_ERR_CORRUPT;
    }
    memcpy(row->members[at], item->value.ptr, FGW_STORAGE_ID_SIZE);
    row->count += item->tag == TAG_MEMBER;
    row->joining += item->tag == TAG_JOINING;
    return FGW_OK;
}

static enum fgw_err take_wanted(struct cluster_set_row *row, struct fgw_bytes value)
{
    uint64_t wanted;
    enum fgw_err err = fgw_tlv_u64(value, &wanted);
    if (err == FGW_OK) {
        row->wanted =
            wanted < FGW_PLACEMENT_MEMBERS_MAX ? (unsigned)wanted : FGW_PLACEMENT_MEMBERS_MAX;
    }
    return err;
}

enum fgw_err cluster_set_decode(struct fgw_bytes data, struct cluster_set_row *out)
{
    struct fgw_tlv_item item;
    struct cluster_set_row row = {0};
    struct fgw_tlv_reader reader = fgw_tlv_reader(data);
    enum fgw_err err;
    fgw_buf_init(&row.carried, DATA_MAX);
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        if (item.tag == TAG_MEMBER || item.tag == TAG_JOINING) {
            err = add_member(&row, &item);
        } else if (item.tag == TAG_LEAVING && item.value.len == FGW_STORAGE_ID_SIZE) {
            row.has_leaving = true;
            memcpy(row.leaving, item.value.ptr, FGW_STORAGE_ID_SIZE);
        } else if (item.tag == TAG_WANTED) {
            err = take_wanted(&row, item.value);
        } else if (fgw_tlv_critical(item.tag)) {
            err = FGW_ERR_NEWER_VERSION;
        } else {
            err = fgw_buf_append(&row.carried, item.raw);
        }
        if (err != FGW_OK) {
            break;
        }
    }
    if (err != FGW_ERR_END || row.count == 0) {
        fgw_buf_deinit(&row.carried);
        return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
    }
    *out = row;
    return FGW_OK;
}

void cluster_set_encode(const struct cluster_set_row *row, struct fgw_buf *out)
{
    for (unsigned i = 0; i < row->count + row->joining; i++) {
        fgw_tlv_put(out, i < row->count ? TAG_MEMBER : TAG_JOINING,
                    fgw_bytes(row->members[i], FGW_STORAGE_ID_SIZE));
    }
    if (row->has_leaving) {
        fgw_tlv_put(out, TAG_LEAVING, fgw_bytes(row->leaving, FGW_STORAGE_ID_SIZE));
    }
    if (row->wanted > 0) {
        fgw_tlv_put_u64(out, TAG_WANTED, row->wanted);
    }
    (void)fgw_buf_append(out, fgw_buf_bytes(&row->carried));
}

void cluster_set_deinit(struct cluster_set_row *row)
{
    fgw_buf_deinit(&row->carried);
}

static enum fgw_err take_row(const struct fgw_cql_result *result, uint64_t id,
                             struct cluster_set_row *out)
{
    int64_t epoch;
    int32_t state;
    struct fgw_bytes data;
    enum fgw_err err = fgw_cql_get_bigint(result, "epoch", &epoch);
    if (err == FGW_OK) {
        err = fgw_cql_get_int(result, "state", &state);
    }
    if (err == FGW_OK) {
        err = fgw_cql_get_blob(result, "data", &data);
    }
    if (err == FGW_OK) {
        err = cluster_set_decode(data, out);
    }
    if (err == FGW_OK) {
        out->id = id;
        out->epoch = (uint64_t)epoch;
        out->state = state;
    }
    return err;
}

enum fgw_err cluster_set_read(struct fgw_cluster *cluster, uint64_t id, struct cluster_set_row *out,
                              struct fgw_error *error)
{
    struct fgw_cql_result *result;
    struct fgw_cql_value key = fgw_cql_bigint((int64_t)id);
    enum fgw_err err = cluster_execute(cluster, STATEMENT_SET, &key, 1, true, &result, error);
    if (err == FGW_OK) {
        err = fgw_cql_result_next(result) ? take_row(result, id, out) : FGW_ERR_NOT_FOUND;
        fgw_cql_result_free(result);
    }
    return err;
}

enum fgw_err cluster_set_write(struct fgw_cluster *cluster, const struct cluster_set_row *row,
                               bool *out_applied, struct fgw_error *error)
{
    struct fgw_buf data;
    fgw_buf_init(&data, DATA_MAX);
    cluster_set_encode(row, &data);
    struct fgw_cql_value values[] = {fgw_cql_bigint((int64_t)row->epoch + 1),
                                     fgw_cql_int(row->state), fgw_cql_blob(fgw_buf_bytes(&data)),
                                     fgw_cql_bigint((int64_t)row->id),
                                     fgw_cql_bigint((int64_t)row->epoch)};
    bool applied = false;
    enum fgw_err err = cluster_change(cluster, STATEMENT_SET_CHANGE, values, 5, &applied, error);
    fgw_buf_deinit(&data);
    if (err == FGW_OK || err == FGW_ERR_UNKNOWN_OUTCOME) {
        *out_applied = applied;
        err = FGW_OK;
    }
    return err;
}
