/* cql.c: the backend's table of operations, its statements and its life. See cql.h. */
#include "meta/cql/cql_internal.h"

#include "base/check.h"

static const struct {
    const char *name;
    enum fgw_cql_statement_kind kind;
    bool idempotent;
    const char *text; /* %s: the keyspace */
} TEXTS[CQL_STATEMENTS] = {
#define CQL_STATEMENT(id, kind, idempotent, text) {#id, kind, idempotent, text},
#include "meta/cql/statements.def"
#undef CQL_STATEMENT
};

static char *text_of(const char *text, const char *keyspace)
{
    const char *mark = strstr(text, "%s");
    struct fgw_buf out;
    fgw_buf_init(&out, 0);
    (void)fgw_buf_append(&out, fgw_bytes(text, (size_t)(mark - text)));
    (void)fgw_buf_append_str(&out, keyspace);
    (void)fgw_buf_append_str(&out, mark + 2);
    char *copy = fgw_xstrdup_bytes(fgw_buf_bytes(&out));
    fgw_buf_deinit(&out);
    return copy;
}

static enum fgw_err cql_ready(struct fgw_meta *meta, struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct fgw_cql_client *client = cql->options.client(cql->options.client_context);
    struct fgw_cql_value values[] = {fgw_cql_text(FGW_LIT("-"))};
    struct fgw_cql_options options = {.deadline_ms = fgw_loop_now_ms(fgw_loop_current()) + 2000};
    struct fgw_cql_result *result = NULL;
    if (fgw_cql_client_nodes_up(client) == 0) {
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, "no database node is reachable");
    }
    enum fgw_err err = cql_read(cql, CQL_BUCKET_GET, values, 1, &options, &result, error);
    if (err == FGW_OK) {
        fgw_cql_result_free(result);
        return FGW_OK;
    }
    return fgw_error_set(error, err, "the database does not answer for keyspace %s", cql->keyspace);
}

static void cql_free(struct fgw_meta *meta)
{
    struct cql *cql = cql_of(meta);
    for (size_t i = 0; i < CQL_STATEMENTS; i++) {
        fgw_xfree((void *)(uintptr_t)cql->statements[i].text);
    }
    for (size_t i = 0; i <= cql->options.workers; i++) {
        cql_cache_free(cql->workers[i].cache);
    }
    fgw_xfree(cql->workers);
    fgw_xfree(cql->secret_keys);
    fgw_xfree(cql->keyspace);
    fgw_xfree(cql);
}

static const struct fgw_meta_ops OPS = {
    .bucket_create = cql_bucket_create,
    .bucket_get = cql_bucket_get,
    .bucket_update = cql_bucket_update,
    .bucket_delete = cql_bucket_delete,
    .bucket_list = cql_bucket_list,
    .object_get = cql_object_get,
    .object_put = cql_object_put,
    .object_delete = cql_object_delete,
    .object_update = cql_object_update,
    .object_list = cql_object_list,
    .version_list = cql_version_list,
    .upload_create = cql_upload_create,
    .upload_get = cql_upload_get,
    .upload_abort = cql_upload_abort,
    .upload_list = cql_upload_list,
    .part_put = cql_part_put,
    .part_list = cql_part_list,
    .upload_complete = cql_upload_complete,
    .key_get = cql_key_get,
    .user_put = cql_user_put,
    .user_get = cql_user_get,
    .user_remove = cql_user_remove,
    .user_list = cql_user_list,
    .key_put = cql_key_put,
    .key_remove = cql_key_remove,
    .key_list = cql_key_list,
    .blob_live = cql_blob_live,
    .ready = cql_ready,
    .free = cql_free,
};

struct fgw_meta *fgw_meta_cql_new(const struct fgw_meta_cql_options *options)
{
    struct cql *cql = fgw_xcalloc(1, sizeof *cql);
    FGW_CHECK(options->shards <= 4096 && options->secret_count > 0);
    cql->base.ops = &OPS;
    cql->options = *options;
    if (cql->options.list_rows == 0) {
        cql->options.list_rows = CQL_SCAN_ROWS_ENOUGH;
    }
    cql->keyspace = fgw_xstrdup(options->keyspace);
    for (size_t i = 0; i < CQL_STATEMENTS; i++) {
        cql->statements[i] =
            (struct fgw_cql_statement){.name = TEXTS[i].name,
                                       .text = text_of(TEXTS[i].text, cql->keyspace),
                                       .kind = TEXTS[i].kind,
                                       .idempotent = TEXTS[i].idempotent};
    }
    cql->secret_keys = fgw_xcalloc(options->secret_count + 1, sizeof *cql->secret_keys);
    for (size_t i = 0; i < options->secret_count; i++) {
        fgw_hkdf_sha256(options->secrets[i], fgw_bytes(NULL, 0), FGW_LIT("stored secrets"),
                        cql->secret_keys[i], FGW_AEAD_KEY_SIZE);
    }
    cql->options.secrets = NULL;
    cql->workers = fgw_xcalloc(options->workers + 1U, sizeof *cql->workers);
    for (size_t i = 0; i <= options->workers; i++) {
        cql->workers[i].cache = cql_cache_new();
        for (size_t g = 0; g < CQL_GATES; g++) {
            /* two in flight a partition and process, one a worker where there are several */
            fgw_gate_init(&cql->workers[i].gates[g].gate, options->workers > 1 ? 1 : 2);
        }
    }
    return &cql->base;
}

void fgw_meta_cql_count_rounds(struct fgw_meta *meta, struct fgw_cql_rounds *rounds)
{
    cql_of(meta)->rounds = rounds;
}
