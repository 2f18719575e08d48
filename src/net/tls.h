/* tls.h: certificates and rules of TLS, shared by connections (OpenSSL stays inside src/net). TLS 1.2
 * and 1.3, ALPN "http/1.1". A context is immutable and reference-counted: a reload makes a new one,
 * connections keep the one they began with. Any thread. */
#ifndef FGW_NET_TLS_H
#define FGW_NET_TLS_H

#include "base/err.h"

struct fgw_tls_context;

/* PEM files: certificate with its chain, key without a passphrase. FGW_ERR_CONFIG with the file and
 * OpenSSL's reason in error->message (also when the key does not belong to the certificate). */
enum fgw_err fgw_tls_server_new(const char *cert_path, const char *key_path,
                                struct fgw_tls_context **out_context,
                                struct fgw_error *error) FGW_MUST_CHECK;
/* ca_path: PEM file of the authorities to trust, NULL for the system's. */
enum fgw_err fgw_tls_client_new(const char *ca_path, struct fgw_tls_context **out_context,
                                struct fgw_error *error) FGW_MUST_CHECK;
struct fgw_tls_context *fgw_tls_ref(struct fgw_tls_context *context);
/* Takes NULL. */
void fgw_tls_unref(struct fgw_tls_context *context);

#endif
