/* legacy.c: the tables the Go gateway's migrations left behind, to be recognised, adopted and
 * listed, never created. Shapes: spec/migrations.md A4. */
#include "base/check.h"
#include "migrate/set.h"

static const struct fgw_migrate_legacy tables[] = {
    {1753962462, "CREATE TABLE MultihashToGroup (Multihash blob, Group bigint, Size int,"
                 " PRIMARY KEY (Multihash, Group))"},
    {1754293669, "CREATE TABLE S3Objects (bucket text, key text, cid text, size bigint,"
                 " updated timestamp, node_id text, expires_at timestamp,"
                 " PRIMARY KEY (bucket, key))"},
    {1756288741, "CREATE TABLE CidGroups (cid text PRIMARY KEY, groups set<bigint>)"},
    {1756300000, "CREATE TABLE MultipartUploads (upload_id text PRIMARY KEY, bucket text,"
                 " key text, node_id text, created_at timestamp, expires_at timestamp,"
                 " status text)"},
    {1769890615, "CREATE TABLE GroupToMultihash (GroupId bigint, Multihash blob, Size int,"
                 " PRIMARY KEY (GroupId, Multihash))"},
    {1769890615, "CREATE TABLE MultihashRefCount (Multihash blob PRIMARY KEY, RefCount counter)"},
    {1769890615, "CREATE TABLE GCQueue (Epoch bigint, Multihash blob, GroupId bigint,"
                 " QueuedAt timestamp, PRIMARY KEY (Epoch, Multihash))"},
};

const struct fgw_migrate_legacy *fgw_migrate_legacy_tables(size_t *out_count)
{
    *out_count = FGW_COUNT_OF(tables);
    return tables;
}

bool fgw_migrate_legacy_version(int64_t version)
{
    for (size_t i = 0; i < FGW_COUNT_OF(tables); i++) {
        if (tables[i].version == version) {
            return true;
        }
    }
    return false;
}
