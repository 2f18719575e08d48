/* prepare.c: prepared statements of a node, found by the statement's address (spec/ycql.md section
 * 5.9). The first caller that needs one prepares it; others that come meanwhile wait for that. */
#include "cql/client_internal.h"

static struct cql_prepared_entry *find_entry(struct cql_node *node,
                                             const struct fgw_cql_statement *statement)
{
    size_t bucket = ((uintptr_t)statement / sizeof *statement) % CQL_PREPARED_BUCKETS;
    struct cql_prepared_entry *entry = node->prepared[bucket];
    while (entry != NULL && entry->statement != statement) {
        entry = entry->next;
    }
    if (entry == NULL) {
        entry = fgw_xcalloc(1, sizeof *entry);
        entry->statement = statement;
        fgw_list_init(&entry->waiting);
        entry->next = node->prepared[bucket];
        node->prepared[bucket] = entry;
    }
    return entry;
}

static void clear_entry(struct cql_prepared_entry *entry)
{
    fgw_xfree((void *)(uintptr_t)entry->id.ptr);
    fgw_xfree(entry->bind_types);
    entry->id = fgw_bytes(NULL, 0);
    entry->bind_types = NULL;
    entry->bind_count = 0;
}

static void fill_entry(struct cql_prepared_entry *entry, const struct fgw_cql_prepared *prepared)
{
    clear_entry(entry);
    uint8_t *id = fgw_xmalloc(prepared->id.len);
    memcpy(id, prepared->id.ptr, prepared->id.len);
    entry->id = fgw_bytes(id, prepared->id.len);
    entry->bind_types = fgw_xcalloc(prepared->bind_count + 1, sizeof *entry->bind_types);
    entry->bind_count = prepared->bind_count;
    for (size_t i = 0; i < prepared->bind_count; i++) {
        entry->bind_types[i] = prepared->bind[i].type;
    }
}

static enum fgw_err ask(struct cql_conn *conn, const struct fgw_cql_statement *statement,
                        uint64_t deadline_ms, struct fgw_cql_response **out_response)
{
    struct cql_request request;
    fgw_cql_conn_begin(conn, &request);
    fgw_cql_encode_prepare(&conn->out, request.stream, fgw_bytes_str(statement->text));
    fgw_cql_conn_send(conn);
    conn->client->counters.requests[FGW_CQL_REQUEST_PREPARE]++;
    return fgw_cql_conn_await(conn, &request, deadline_ms, out_response);
}

enum fgw_err fgw_cql_prepare(struct cql_conn *conn, const struct fgw_cql_statement *statement,
                             uint64_t deadline_ms, struct cql_prepared_entry **out_entry,
                             struct fgw_cql_response **out_response)
{
    struct cql_prepared_entry *entry = find_entry(conn->node, statement);
    while (entry->id.len == 0 && entry->preparing) {
        enum fgw_err err = fgw_cql_pause_until(&entry->waiting, deadline_ms);
        if (err != FGW_OK) {
            return err;
        }
    }
    if (entry->id.len > 0) {
        *out_entry = entry;
        return FGW_OK;
    }
    if (!fgw_cql_conn_has_room(conn)) {
        return FGW_ERR_AGAIN;
    }
    entry->preparing = true;
    struct fgw_cql_response *response = NULL;
    enum fgw_err err = ask(conn, statement, deadline_ms, &response);
    entry->preparing = false;
    if (err == FGW_OK && response->opcode == FGW_CQL_OP_RESULT &&
        response->kind == FGW_CQL_RESULT_PREPARED) {
        fill_entry(entry, &response->prepared);
        fgw_cql_response_free(response);
        response = NULL;
        *out_entry = entry;
    } else if (err == FGW_OK) {
        *out_entry = NULL;
        *out_response = response;
    }
    fgw_cql_wake_all(&entry->waiting);
    return err;
}

void fgw_cql_prepared_forget(struct cql_prepared_entry *entry, struct fgw_bytes id)
{
    if (fgw_bytes_eq(entry->id, id)) {
        clear_entry(entry);
    }
}

void fgw_cql_prepared_free_all(struct cql_node *node)
{
    for (size_t bucket = 0; bucket < CQL_PREPARED_BUCKETS; bucket++) {
        while (node->prepared[bucket] != NULL) {
            struct cql_prepared_entry *entry = node->prepared[bucket];
            node->prepared[bucket] = entry->next;
            clear_entry(entry);
            fgw_xfree(entry);
        }
    }
}
