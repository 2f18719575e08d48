/* legacy.c: see legacy.h. */
#include "import/legacy.h"

#include "base/arena.h"

enum { PAGE_ROWS = 500 };

struct fgw_legacy {
    struct fgw_cql_client *client;
    struct fgw_arena arena; /* the query */
    const char *query;
    struct fgw_cql_result *result; /* of the page handed out */
    struct fgw_legacy_row *rows;
    size_t row_room;
    bool ended;
};

struct columns {
    bool any, bucket, key, cid, size, node_id, expires_at;
};

static enum fgw_err look_at_columns(struct fgw_legacy *legacy, const char *keyspace,
                                    struct columns *columns, struct fgw_error *error)
{
    struct fgw_cql_result *result = NULL;
    const char *query = fgw_arena_printf(
        &legacy->arena,
        "SELECT column_name FROM system_schema.columns WHERE keyspace_name = '%s' AND "
        "table_name = 's3objects'",
        keyspace);
    enum fgw_err err = fgw_cql_query(legacy->client, query, FGW_CQL_READ, NULL, &result, error);
    if (err != FGW_OK) {
        return err;
    }
    while (fgw_cql_result_next(result)) {
        struct fgw_bytes name;
        if (fgw_cql_get_text(result, "column_name", &name) != FGW_OK) {
            continue;
        }
        columns->any = true;
        columns->bucket |= fgw_bytes_eq_str(name, "bucket");
        columns->key |= fgw_bytes_eq_str(name, "key");
        columns->cid |= fgw_bytes_eq_str(name, "cid");
        columns->size |= fgw_bytes_eq_str(name, "size");
        columns->node_id |= fgw_bytes_eq_str(name, "node_id");
        columns->expires_at |= fgw_bytes_eq_str(name, "expires_at");
    }
    fgw_cql_result_free(result);
    return FGW_OK;
}

enum fgw_err fgw_legacy_open(struct fgw_cql_client *client, const char *keyspace,
                             struct fgw_legacy **out_legacy, struct fgw_error *error)
{
    struct fgw_legacy *legacy = fgw_xcalloc(1, sizeof *legacy);
    struct columns columns = {0};
    legacy->client = client;
    fgw_arena_init(&legacy->arena, 0);
    enum fgw_err err = look_at_columns(legacy, keyspace, &columns, error);
    if (err == FGW_OK && !columns.any) {
        err =
            fgw_error_set(error, FGW_ERR_NOT_FOUND, "keyspace %s has no table S3Objects", keyspace);
    } else if (err == FGW_OK && !(columns.bucket && columns.key && columns.cid && columns.size)) {
        err = fgw_error_set(error, FGW_ERR_CORRUPT,
                            "table S3Objects of keyspace %s lacks one of bucket, key, cid, size",
                            keyspace);
    }
    if (err != FGW_OK) {
        fgw_legacy_free(legacy);
        return err;
    }
    legacy->query = fgw_arena_printf(
        &legacy->arena, "SELECT bucket, key, cid, size%s%s FROM %s.s3objects",
        columns.node_id ? ", node_id" : "", columns.expires_at ? ", expires_at" : "", keyspace);
    *out_legacy = legacy;
    return FGW_OK;
}

static struct fgw_bytes text_of(const struct fgw_cql_result *result, const char *column)
{
    struct fgw_bytes text = {NULL, 0};
    return fgw_cql_get_text(result, column, &text) == FGW_OK ? text : fgw_bytes(NULL, 0);
}

/* What is null stays empty; a null size is no size. */
static void take_row(const struct fgw_cql_result *result, struct fgw_legacy_row *row)
{
    *row = (struct fgw_legacy_row){.bucket = text_of(result, "bucket"),
                                   .key = text_of(result, "key"),
                                   .cid = text_of(result, "cid"),
                                   .size = -1,
                                   .node_id = text_of(result, "node_id")};
    (void)!fgw_cql_get_bigint(result, "size", &row->size);
    (void)!fgw_cql_get_timestamp(result, "expires_at", &row->expires_ms);
}

enum fgw_err fgw_legacy_next(struct fgw_legacy *legacy, const struct fgw_legacy_row **out_rows,
                             size_t *out_count, struct fgw_error *error)
{
    struct fgw_cql_options options = {.page_size = PAGE_ROWS};
    struct fgw_cql_result *page = NULL;
    size_t count = 0;
    if (legacy->ended) {
        return FGW_ERR_END;
    }
    if (legacy->result != NULL) {
        options.paging_state = fgw_cql_result_paging_state(legacy->result);
    }
    enum fgw_err err =
        fgw_cql_query(legacy->client, legacy->query, FGW_CQL_READ, &options, &page, error);
    if (err != FGW_OK) {
        return err;
    }
    fgw_cql_result_free(legacy->result);
    legacy->result = page;
    legacy->ended = !fgw_cql_result_has_more(page);
    if (fgw_cql_result_row_count(page) > legacy->row_room) {
        legacy->row_room = fgw_cql_result_row_count(page);
        legacy->rows = fgw_xrealloc(legacy->rows, legacy->row_room * sizeof *legacy->rows);
    }
    while (count < legacy->row_room && fgw_cql_result_next(page)) {
        take_row(page, &legacy->rows[count++]);
    }
    *out_rows = legacy->rows;
    *out_count = count;
    return FGW_OK;
}

void fgw_legacy_free(struct fgw_legacy *legacy)
{
    if (legacy == NULL) {
        return;
    }
    fgw_cql_result_free(legacy->result);
    fgw_xfree(legacy->rows);
    fgw_arena_deinit(&legacy->arena);
    fgw_xfree(legacy);
}
