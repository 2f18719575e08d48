/* auth.h: who asks. Signature Version 4 by src/sigv4; secrets from the metadata backend or, for the
 * root identity, from the engine's options. */
#ifndef FGW_S3_AUTH_H
#define FGW_S3_AUTH_H

#include "s3/request.h"

/* Fills request->auth, ->seed and ->identity. A request without credentials becomes anonymous.
 * Errors: those of fgw_sig_parse and fgw_sig_verify, INVALID_ACCESS_KEY_ID (unknown or disabled),
 * INVALID_TOKEN (session tokens are not issued here), UNAVAILABLE. */
enum fgw_err fgw_s3_authenticate(struct fgw_s3_request *request) FGW_MUST_CHECK;
/* Of forms, which are signed by their policy: fills request->identity and finds the secret to check
 * the signature with. The caller takes the identity back when it is wrong. Errors as above. */
enum fgw_err fgw_s3_identify(struct fgw_s3_request *request, struct fgw_bytes access_key,
                             struct fgw_bytes *out_secret) FGW_MUST_CHECK;
/* Region, service, time and key cache that signatures are checked with. */
struct fgw_sig_policy fgw_s3_sig_policy(const struct fgw_s3_request *request);

#endif
