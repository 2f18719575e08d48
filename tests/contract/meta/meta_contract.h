/* meta_contract.h: what every metadata backend must do (src/meta/meta.h), as cases that run in a
 * fiber against any backend and any blob store. A failed check prints where and aborts. */
#ifndef FGW_TESTS_META_CONTRACT_H
#define FGW_TESTS_META_CONTRACT_H

#include <stdio.h>
#include <stdlib.h>

#include "meta/meta.h"

#define MUST(expression) \
    do { \
        if (!(expression)) { \
            (void)fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #expression); \
            abort(); \
        } \
    } while (0)
/* Where answers get lost: a write that is refused after its first answer was lost may be told as not
 * known, which changes nothing either. */
extern bool contract_loses_answers;
bool contract_answered(enum fgw_err got, enum fgw_err wanted);
/* The call answers `code`; otherwise prints what it answered. */
#define MUST_ANSWER(call, code) \
    do { \
        enum fgw_err got_ = (call); \
        if (!contract_answered(got_, code)) { \
            (void)fprintf(stderr, "%s:%d: %s answered %s, not %s\n", __FILE__, __LINE__, #call, \
                          fgw_err_name(got_), fgw_err_name(code)); \
            abort(); \
        } \
    } while (0)

struct contract {
    struct fgw_meta *meta;
    struct fgw_blobs *blobs;
    struct fgw_arena arena; /* reset between cases */
    struct fgw_error error;
    unsigned next_bucket;
};

/* Runs all cases (or those whose name contains `only`) in the calling fiber; number run. */
unsigned meta_contract_run(struct fgw_meta *meta, struct fgw_blobs *blobs, const char *only);

/* -- helpers shared by the cases -- */
struct fgw_bucket contract_bucket(struct contract *c, enum fgw_versioning versioning);
/* Puts `body` under key; conditions may be NULL. */
enum fgw_err contract_put(struct contract *c, const struct fgw_bucket *bucket, const char *key,
                          const char *body, const struct fgw_conditions *conditions,
                          struct fgw_written *out);
void contract_stage(struct contract *c, const struct fgw_bucket *bucket, struct fgw_bytes key,
                    const struct fgw_id *owner_id, uint64_t extent, const char *body,
                    struct fgw_blob_staged *out);
/* ETag used for a body: 32 hex digits that depend on it. */
struct fgw_bytes contract_etag(struct contract *c, const char *body);

typedef void contract_case(struct contract *c);
extern contract_case case_buckets, case_bucket_list_pages, case_objects, case_conditions,
    case_one_winner, case_counter, case_versions, case_null_versions, case_delete_markers_in_lists,
    case_lists_match_model, case_version_pages_match_model, case_multipart, case_complete_once,
    case_upload_list, case_identities, case_delete_bucket_race, case_update_object, case_blob_live,
    case_odd_keys, case_deleting_while_paging;

#endif
