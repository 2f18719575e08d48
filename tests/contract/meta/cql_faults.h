/* cql_faults.h: what the cases of run_cql_faults.c share: several backends over one keyspace, as several
 * processes would have, and the faults that are injected between their steps. */
#ifndef FGW_TESTS_CONTRACT_META_CQL_FAULTS_H
#define FGW_TESTS_CONTRACT_META_CQL_FAULTS_H

#include "contract/meta/cql_keyspace.h"
#include "contract/meta/meta_contract.h"

enum { BACKENDS = 3 };

struct faults {
    unsigned lost_permille;   /* answer lost, applied */
    unsigned unsent_permille; /* answer lost, never sent */
    unsigned late_permille;   /* answer lost, applied 400 ms later */
    unsigned pause_permille;
    unsigned pause_max_ms;
    bool dies; /* after so many writes nothing is sent any more, as when the process dies there */
    unsigned writes_left;
    bool died;
    unsigned hit;
};

struct world {
    struct cql_keyspace keyspace;
    struct fgw_blobs *blobs;
    struct fgw_meta *backends[BACKENDS];
    struct faults faults;
    struct contract c; /* on the first backend */
};

/* -- of purging (cql_faults_purge.c) -- */
void case_purge(struct world *world);
void case_purge_of_everything(struct world *world);
void case_purge_is_claimed_once(struct world *world);

#endif
