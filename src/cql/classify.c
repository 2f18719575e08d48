/* classify.c: see classify.h; the rules are spec/ycql.md section 2.3.
 *
 * Beyond the rules there: YCQL's -3 and -303 (stale metadata) inside 0x2200 count as
 * NOT_FOUND_SCHEMA, because section 3.1 sees them on nodes that lag behind a DDL statement. Texts
 * are searched in the first line only: what follows quotes the statement, whose own words (a
 * column called "lease") must not decide.
 */
#include "cql/classify.h"

#include "base/check.h"

enum {
    QL_STALE_STATEMENT = -3,
    QL_DUPLICATE_OBJECT = -202,
    QL_DUPLICATE_COLUMN = -204,
    QL_NO_KEYSPACE = -215,
    QL_DUPLICATE_TYPE = -218,
    QL_EXECUTION = -300,
    QL_OBJECT_NOT_FOUND = -301,
    QL_WRONG_METADATA = -303,
    QL_KEYSPACE_EXISTS = -307,
    QL_KEYSPACE_NOT_FOUND = -308,
    QL_TABLET_NOT_FOUND = -309
};

/* ASCII case-insensitive; needles in lower case. */
static bool contains_any(struct fgw_bytes text, const char *const *needles, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        size_t len = strlen(needles[n]);
        for (size_t from = 0; from + len <= text.len; from++) {
            if (fgw_bytes_ieq_str(fgw_bytes_sub(text, from, len), needles[n])) {
                return true;
            }
        }
    }
    return false;
}

static bool speaks_of_timing(struct fgw_bytes text)
{
    static const char *const WORDS[] = {"deadline",
                                        "timed out",
                                        "timeout",
                                        "leader",
                                        "lease",
                                        "try again",
                                        "service unavailable",
                                        "not enough replicas"};
    return contains_any(text, WORDS, FGW_COUNT_OF(WORDS));
}

/* ALTER TABLE ADD of a column that is there: yugabyte-db #3315; Cassandra and ScyllaDB. */
static bool speaks_of_existing_column(struct fgw_bytes text)
{
    static const char *const WORDS[] = {"conflicts with existing column",
                                        "conflicts with the existing column",
                                        "conflicts with an existing column", "already exists"};
    return contains_any(text, WORDS, FGW_COUNT_OF(WORDS));
}

static bool speaks_of_missing_schema(struct fgw_bytes text)
{
    static const char *const WORDS[] = {"unconfigured table", "unconfigured columnfamily"};
    static const char *const OBJECTS[] = {"table", "keyspace"};
    static const char *const MISSING[] = {"does not exist", "doesn't exist"};
    return contains_any(text, WORDS, FGW_COUNT_OF(WORDS)) ||
           (contains_any(text, OBJECTS, FGW_COUNT_OF(OBJECTS)) &&
            contains_any(text, MISSING, FGW_COUNT_OF(MISSING)));
}

static enum fgw_cql_class classify_invalid(const struct fgw_cql_server_error *error,
                                           enum fgw_cql_statement_kind kind)
{
    struct fgw_bytes line =
        fgw_bytes_sub(error->message, 0, fgw_bytes_find_byte(error->message, '\n'));
    if (kind == FGW_CQL_DDL && speaks_of_existing_column(line)) {
        return FGW_CQL_CLASS_ALREADY_EXISTS;
    }
    switch (error->ql_code) {
    case QL_DUPLICATE_OBJECT:
    case QL_DUPLICATE_COLUMN:
    case QL_DUPLICATE_TYPE:
    case QL_KEYSPACE_EXISTS:
        return FGW_CQL_CLASS_ALREADY_EXISTS;
    case QL_OBJECT_NOT_FOUND:
    case QL_KEYSPACE_NOT_FOUND:
    case QL_NO_KEYSPACE:
    case QL_WRONG_METADATA:
    case QL_STALE_STATEMENT:
        return FGW_CQL_CLASS_NOT_FOUND_SCHEMA;
    case QL_EXECUTION:
    case QL_TABLET_NOT_FOUND:
        return FGW_CQL_CLASS_TRANSIENT_UNKNOWN;
    default:
        break;
    }
    if (speaks_of_timing(line)) {
        return FGW_CQL_CLASS_TRANSIENT_UNKNOWN;
    }
    if (error->ql_code == 0 && speaks_of_missing_schema(line)) {
        return FGW_CQL_CLASS_NOT_FOUND_SCHEMA;
    }
    return FGW_CQL_CLASS_BUG;
}

/* Cassandra names the reason in the text only; for version 4 of the protocol there is no other place. */
static bool speaks_of_tombstones(struct fgw_bytes text)
{
    static const char *const WORDS[] = {"read_too_many_tombstones", "too many tombstones"};
    return contains_any(text, WORDS, FGW_COUNT_OF(WORDS));
}

/* A conditional statement has a Paxos phase at its serial consistency and then a commit at the
 * other one: only an Unavailable of the first phase proves that nothing was written. */
static enum fgw_cql_class classify_unavailable(const struct fgw_cql_server_error *error,
                                               enum fgw_cql_statement_kind kind)
{
    bool in_paxos =
        error->consistency == FGW_CQL_SERIAL || error->consistency == FGW_CQL_LOCAL_SERIAL;
    return kind == FGW_CQL_LWT && !in_paxos ? FGW_CQL_CLASS_TRANSIENT_UNKNOWN
                                            : FGW_CQL_CLASS_TRANSIENT_NOT_APPLIED;
}

enum fgw_cql_class fgw_cql_classify(const struct fgw_cql_server_error *error,
                                    enum fgw_cql_statement_kind kind, struct fgw_bytes prepared_id)
{
    switch (error->code) {
    case FGW_CQL_ERROR_ALREADY_EXISTS:
        return FGW_CQL_CLASS_ALREADY_EXISTS;
    case FGW_CQL_ERROR_UNPREPARED:
        return prepared_id.len > 0 && fgw_bytes_eq(error->statement_id, prepared_id)
                   ? FGW_CQL_CLASS_REPREPARE
                   : FGW_CQL_CLASS_PROTO;
    case FGW_CQL_ERROR_UNAVAILABLE:
        return classify_unavailable(error, kind);
    case FGW_CQL_ERROR_OVERLOADED:
    case FGW_CQL_ERROR_BOOTSTRAPPING:
        return FGW_CQL_CLASS_TRANSIENT_NOT_APPLIED;
    case FGW_CQL_ERROR_READ_FAILURE:
        return kind == FGW_CQL_READ && speaks_of_tombstones(error->message)
                   ? FGW_CQL_CLASS_TOMBSTONES
                   : FGW_CQL_CLASS_TRANSIENT_UNKNOWN;
    case FGW_CQL_ERROR_SERVER:
    case FGW_CQL_ERROR_TRUNCATE:
    case FGW_CQL_ERROR_WRITE_TIMEOUT:
    case FGW_CQL_ERROR_READ_TIMEOUT:
    case FGW_CQL_ERROR_WRITE_FAILURE:
    case FGW_CQL_ERROR_CDC_WRITE_FAILURE:
    case FGW_CQL_ERROR_CAS_WRITE_UNKNOWN:
        return FGW_CQL_CLASS_TRANSIENT_UNKNOWN;
    case FGW_CQL_ERROR_CREDENTIALS:
    case FGW_CQL_ERROR_UNAUTHORIZED:
        return FGW_CQL_CLASS_AUTH;
    case FGW_CQL_ERROR_PROTOCOL:
        return FGW_CQL_CLASS_PROTO;
    case FGW_CQL_ERROR_INVALID:
    case FGW_CQL_ERROR_CONFIG:
        return classify_invalid(error, kind);
    default:
        return FGW_CQL_CLASS_BUG;
    }
}

const char *fgw_cql_class_name(enum fgw_cql_class class)
{
    static const char *const NAMES[FGW_CQL_CLASSES] = {
        [FGW_CQL_CLASS_ALREADY_EXISTS] = "already_exists",
        [FGW_CQL_CLASS_NOT_FOUND_SCHEMA] = "not_found_schema",
        [FGW_CQL_CLASS_REPREPARE] = "reprepare",
        [FGW_CQL_CLASS_TRANSIENT_UNKNOWN] = "transient_unknown",
        [FGW_CQL_CLASS_TRANSIENT_NOT_APPLIED] = "transient_not_applied",
        [FGW_CQL_CLASS_TOMBSTONES] = "tombstones",
        [FGW_CQL_CLASS_AUTH] = "auth",
        [FGW_CQL_CLASS_PROTO] = "proto",
        [FGW_CQL_CLASS_BUG] = "bug",
    };
    return (size_t) class < FGW_CQL_CLASSES ? NAMES[class] : "bug";
}

enum fgw_err fgw_cql_class_err(enum fgw_cql_class class, enum fgw_cql_statement_kind kind,
                               int32_t error_code)
{
    switch (class) {
    case FGW_CQL_CLASS_ALREADY_EXISTS:
        return FGW_ERR_EXISTS;
    case FGW_CQL_CLASS_NOT_FOUND_SCHEMA:
        return FGW_ERR_NOT_FOUND;
    case FGW_CQL_CLASS_TOMBSTONES:
        return FGW_ERR_TOO_LARGE;
    case FGW_CQL_CLASS_AUTH:
        return FGW_ERR_ACCESS_DENIED;
    case FGW_CQL_CLASS_TRANSIENT_NOT_APPLIED:
        return error_code == FGW_CQL_ERROR_OVERLOADED ? FGW_ERR_SLOW_DOWN : FGW_ERR_UNAVAILABLE;
    case FGW_CQL_CLASS_REPREPARE:
        return FGW_ERR_UNAVAILABLE;
    case FGW_CQL_CLASS_TRANSIENT_UNKNOWN:
        return kind == FGW_CQL_READ ? FGW_ERR_UNAVAILABLE : FGW_ERR_UNKNOWN_OUTCOME;
    case FGW_CQL_CLASS_PROTO:
    case FGW_CQL_CLASS_BUG:
    case FGW_CQL_CLASSES:
        break;
    }
    return FGW_ERR_INTERNAL;
}
