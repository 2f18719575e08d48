/* identity.c: the cluster id of the database (design/metadata.md section 8): made once, by INSERT IF
 * NOT EXISTS; whoever comes second reads what the first wrote. */
#include <stdio.h>

#include "base/encode.h"
#include "base/rng.h"
#include "cluster/cluster_internal.h"

enum { TEXT_SIZE = 256 };

static enum fgw_err read_id(struct fgw_cql_client *client, const char *keyspace,
                            uint8_t out_id[FGW_CLUSTER_ID_SIZE], struct fgw_error *error)
{
    char text[TEXT_SIZE];
    struct fgw_cql_options options = {.serial = true};
    struct fgw_cql_result *result;
    struct fgw_bytes id;
    (void)snprintf(text, sizeof text, "SELECT data FROM %s.map WHERE id = 'cluster'", keyspace);
    enum fgw_err err = fgw_cql_query(client, text, FGW_CQL_READ, &options, &result, error);
    if (err == FGW_ERR_NOT_FOUND || err == FGW_ERR_INTERNAL) {
        return fgw_error_set(
            error, FGW_ERR_NOT_FOUND,
            "The tables of keyspace %s are not there yet (fgw db-init makes them).", keyspace);
    }
    if (err != FGW_OK) {
        return err;
    }
    err = FGW_ERR_NOT_FOUND;
    if (fgw_cql_result_next(result)) {
        err = fgw_cql_get_blob(result, "data", &id);
        if (err == FGW_OK && id.len == FGW_CLUSTER_ID_SIZE) {
            memcpy(out_id, id.ptr, FGW_CLUSTER_ID_SIZE);
        } else {
            err = FGW_ERR_CORRUPT;
        }
    }
    fgw_cql_result_free(result);
    if (err == FGW_ERR_NOT_FOUND) {
        return fgw_error_set(error, err,
                             "Keyspace %s has no cluster id yet: a storage node or "
                             "fgw db-init makes it.",
                             keyspace);
    }
    return err;
}

static enum fgw_err make_id(struct fgw_cql_client *client, const char *keyspace,
                            struct fgw_error *error)
{
    char text[TEXT_SIZE];
    char hex[2 * FGW_CLUSTER_ID_SIZE + 1] = {0};
    uint8_t id[FGW_CLUSTER_ID_SIZE];
    struct fgw_cql_result *result;
    fgw_rng_fill(id, sizeof id);
    fgw_hex_encode(fgw_bytes(id, sizeof id), hex);
    (void)snprintf(text, sizeof text,
                   "INSERT INTO %s.map (id, version, data) VALUES ('cluster', 1, 0x%s) "
                   "IF NOT EXISTS",
                   keyspace, hex);
    enum fgw_err err = fgw_cql_query(client, text, FGW_CQL_LWT, NULL, &result, error);
    if (err == FGW_OK) {
        fgw_cql_result_free(result);
    }
    /* whether ours or another's, or unknown: the row tells */
    return err == FGW_ERR_UNKNOWN_OUTCOME ? FGW_OK : err;
}

enum fgw_err fgw_cluster_identify(struct fgw_cql_client *client, const char *keyspace, bool create,
                                  uint8_t out_id[FGW_CLUSTER_ID_SIZE], struct fgw_error *error)
{
    char text[TEXT_SIZE];
    enum fgw_err err = read_id(client, keyspace, out_id, error);
    if (err != FGW_ERR_NOT_FOUND || !create) {
        return err;
    }
    /* the table itself may be what is missing */
    struct fgw_cql_result *result;
    (void)snprintf(text, sizeof text, "SELECT id FROM %s.map LIMIT 1", keyspace);
    if (fgw_cql_query(client, text, FGW_CQL_READ, NULL, &result, NULL) != FGW_OK) {
        return err;
    }
    fgw_cql_result_free(result);
    err = make_id(client, keyspace, error);
    return err == FGW_OK ? read_id(client, keyspace, out_id, error) : err;
}
