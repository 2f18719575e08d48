/* auth.h: who asks. Signature Version 4 by src/sigv4; secrets from the metadata backend or, for the
 * root identity, from the engine's options. */
#ifndef FGW_S3_AUTH_H
#define FGW_S3_AUTH_H

#include "s3/request.h"

/* Fills request->auth, ->seed and ->identity. A request without credentials becomes anonymous.
 * Errors: those of fgw_sig_parse and fgw_sig_verify, INVALID_ACCESS_KEY_ID (unknown or disabled),
 * INVALID_TOKEN (session tokens are not issued here), UNAVAILABLE. */
enum fgw_err fgw_s3_authenticate(struct fgw_s3_request *request) FGW_MUST_CHECK;

#endif
