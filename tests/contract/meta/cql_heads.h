/* cql_heads.h: many objects of a bucket at once, as rows that are written by batches: without bodies, for
 * what lists cost. */
#ifndef FGW_TESTS_CQL_HEADS_H
#define FGW_TESTS_CQL_HEADS_H

#include "contract/meta/cql_keyspace.h"
#include "meta/meta.h"

enum { CQL_HEADS_KEY_SIZE = 32 };

struct cql_heads {
    struct cql_keyspace *keyspace;
    const struct fgw_bucket *bucket; /* without versioning */
    unsigned long count, per_prefix; /* keys are group-NNNNNN/NNNNNN */
};

/* Prints why and aborts when it cannot be done. In a fiber; several run at once. */
void cql_heads_load(const struct cql_heads *heads);
/* Key `index`; its length. */
size_t cql_heads_key(const struct cql_heads *heads, unsigned long index, char out[CQL_HEADS_KEY_SIZE]);

#endif
