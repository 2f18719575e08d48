/* post_policy.h: signatures of browser uploads (POST form): over the base64 text of the policy.
 * What the policy says, and that the form obeys it, is the caller's matter.
 * Source: AWS "Authenticating Requests: Browser-Based Uploads Using POST"; spec/s3-wire.md 5.82. */
#ifndef FGW_SIGV4_POST_POLICY_H
#define FGW_SIGV4_POST_POLICY_H

#include "sigv4/auth.h"

/* Form fields, as sent. */
struct fgw_sig_post_form {
    struct fgw_bytes policy;     /* base64 text */
    struct fgw_bytes algorithm;  /* x-amz-algorithm */
    struct fgw_bytes credential; /* x-amz-credential */
    struct fgw_bytes date;       /* x-amz-date */
    struct fgw_bytes signature;  /* x-amz-signature */
};

/* Takes the credential apart and checks algorithm, date, region and service; out_access_key points
 * into the form. Errors: INVALID_ARGUMENT, NOT_IMPLEMENTED (ECDSA); wrong region as verify. */
enum fgw_err fgw_sig_post_parse(const struct fgw_sig_post_form *form,
                                const struct fgw_sig_policy *policy,
                                struct fgw_bytes *out_access_key,
                                struct fgw_error *error) FGW_MUST_CHECK;

/* V4: hex HMAC with the signing key; the form must have passed fgw_sig_post_parse.
 * SIGNATURE_DOES_NOT_MATCH. The policy's own expiration bounds the time, no skew is applied. */
enum fgw_err fgw_sig_verify_post_policy(const struct fgw_sig_post_form *form,
                                        const struct fgw_sig_policy *policy,
                                        struct fgw_bytes secret,
                                        struct fgw_error *error) FGW_MUST_CHECK;

/* V2 (fields AWSAccessKeyId, policy, signature): base64 of HMAC-SHA1 over the base64 policy. */
enum fgw_err fgw_sig_verify_post_policy_v2(struct fgw_bytes policy, struct fgw_bytes signature,
                                           struct fgw_bytes secret,
                                           struct fgw_error *error) FGW_MUST_CHECK;

#endif
