/* form_policy.h: the policy document of a browser upload: what a signed form may say. Pure functions
 * of the document, the fields and the time. Source: AWS "Creating a POST policy"; spec/s3-wire.md
 * 5.82, 5.84. */
#ifndef FGW_S3_FORM_POLICY_H
#define FGW_S3_FORM_POLICY_H

#include "meta/meta.h"

/* Bounds of the file that a policy sets. */
struct fgw_s3_form_limits {
    uint64_t min_bytes;
    uint64_t max_bytes;
};

/* text: base64 of the JSON document. fields: those of the form, and "bucket"; names in any case.
 * Limits are only ever narrowed. Errors, with a message: INVALID_POLICY_DOCUMENT (not such a
 * document), ACCESS_DENIED (expired, a condition that does not hold, a field that no condition
 * speaks of). */
enum fgw_err fgw_s3_form_policy_check(struct fgw_arena *arena, struct fgw_bytes text,
                                      const struct fgw_meta_pair *fields, size_t count,
                                      int64_t now_ms, struct fgw_s3_form_limits *limits,
                                      struct fgw_error *error) FGW_MUST_CHECK;

#endif
