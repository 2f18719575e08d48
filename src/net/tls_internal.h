/* tls_internal.h: the OpenSSL side of a context, for conn_tls.c. */
#ifndef FGW_NET_TLS_INTERNAL_H
#define FGW_NET_TLS_INTERNAL_H

#include <openssl/ssl.h>

#include "net/tls.h"

SSL_CTX *fgw_tls_openssl(const struct fgw_tls_context *context);
/* Text of OpenSSL's oldest queued error ("unknown" without one); empties the queue. */
const char *fgw_tls_reason(void);

#endif
