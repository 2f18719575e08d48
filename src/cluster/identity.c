/* identity.c: the cluster id of the database (design/metadata.md section 8): the row `cluster` of the
 * table map, and no other place; made once, by INSERT IF NOT EXISTS; whoever comes second reads what
 * the first wrote. */
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
                            const uint8_t id[FGW_CLUSTER_ID_SIZE], struct fgw_error *error)
{
    char text[TEXT_SIZE];
    char hex[2 * FGW_CLUSTER_ID_SIZE + 1] = {0};
    struct fgw_cql_result *result;
    fgw_hex_encode(fgw_bytes(id, FGW_CLUSTER_ID_SIZE), hex);
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

static enum fgw_err any_bucket(struct fgw_cql_client *client, const char *keyspace, bool *out_any,
                               struct fgw_error *error)
{
    char text[TEXT_SIZE];
    struct fgw_cql_result *result;
    (void)snprintf(text, sizeof text, "SELECT name FROM %s.buckets LIMIT 1", keyspace);
    enum fgw_err err = fgw_cql_query(client, text, FGW_CQL_READ, NULL, &result, error);
    if (err == FGW_OK) {
        *out_any = fgw_cql_result_next(result);
        fgw_cql_result_free(result);
    }
    return err;
}

/* Nothing may be served, and above all nothing swept, by a directory beside a database that is not
 * its own: an empty one names nothing, and everything would count as garbage. */
static enum fgw_err choose_id(const struct fgw_identify *how, const char *keyspace, bool buckets,
                              uint8_t out_id[FGW_CLUSTER_ID_SIZE], struct fgw_error *error)
{
    if (how->own != NULL && !how->own_is_empty && !buckets) {
        return fgw_error_set(error, FGW_ERR_NOT_FOUND,
                             "keyspace %s has neither buckets nor a cluster id, and the data "
                             "directory holds data: is it the right database?",
                             keyspace);
    }
    if (how->own == NULL && buckets) {
        return fgw_error_set(error, FGW_ERR_NOT_FOUND,
                             "keyspace %s has buckets and no cluster id: start the server whose "
                             "data it describes first, which writes its own",
                             keyspace);
    }
    if (how->own != NULL) {
        memcpy(out_id, how->own, FGW_CLUSTER_ID_SIZE);
    } else {
        fgw_rng_fill(out_id, FGW_CLUSTER_ID_SIZE);
    }
    return FGW_OK;
}

enum fgw_err fgw_cluster_identify(struct fgw_cql_client *client, const char *keyspace,
                                  const struct fgw_identify *how,
                                  uint8_t out_id[FGW_CLUSTER_ID_SIZE], struct fgw_error *error)
{
    uint8_t id[FGW_CLUSTER_ID_SIZE];
    bool buckets = false;
    enum fgw_err err = read_id(client, keyspace, out_id, error);
    if (err != FGW_ERR_NOT_FOUND || !how->make) {
        return err;
    }
    /* the tables themselves may be what is missing */
    if (any_bucket(client, keyspace, &buckets, NULL) != FGW_OK) {
        return err;
    }
    err = choose_id(how, keyspace, buckets, id, error);
    if (err == FGW_OK) {
        err = make_id(client, keyspace, id, error);
    }
    return err == FGW_OK ? read_id(client, keyspace, out_id, error) : err;
}
