/* tls.c: see tls.h. */
#include "net/tls.h"

#include <openssl/err.h>
#include <stdatomic.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "net/tls_internal.h"

enum { READ_AHEAD_SIZE = 32 * 1024, SESSION_CACHE_SIZE = 4096 };

struct fgw_tls_context {
    _Atomic unsigned references;
    SSL_CTX *openssl;
};

SSL_CTX *fgw_tls_openssl(const struct fgw_tls_context *context)
{
    return context->openssl;
}

const char *fgw_tls_reason(void)
{
    unsigned long code = ERR_get_error();
    ERR_clear_error();
    const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
    return reason == NULL ? "unknown" : reason;
}

/* RFC 7301: a client that offers only other protocols gets a fatal alert. */
static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                       const unsigned char *offered, unsigned int offered_len, void *arg)
{
    (void)ssl;
    (void)arg;
    unsigned char *chosen;
    static const unsigned char ours[] = "\x08http/1.1";
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof ours - 1, offered, offered_len) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static struct fgw_tls_context *new_context(const SSL_METHOD *method)
{
    struct fgw_tls_context *context = fgw_xcalloc(1, sizeof *context);
    atomic_init(&context->references, 1);
    context->openssl = SSL_CTX_new(method);
    FGW_CHECK(context->openssl != NULL);
    (void)SSL_CTX_set_min_proto_version(context->openssl, TLS1_2_VERSION);
    /* a peer that closes without close_notify is noticed by HTTP's own framing */
    (void)SSL_CTX_set_options(context->openssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                                    SSL_OP_IGNORE_UNEXPECTED_EOF |
                                                    SSL_OP_CIPHER_SERVER_PREFERENCE |
                                                    SSL_OP_PRIORITIZE_CHACHA);
    (void)SSL_CTX_set_mode(context->openssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context->openssl, 1);
    SSL_CTX_set_default_read_buffer_len(context->openssl, READ_AHEAD_SIZE);
    return context;
}

enum fgw_err fgw_tls_server_new(const char *cert_path, const char *key_path,
                                struct fgw_tls_context **out_context, struct fgw_error *error)
{
    struct fgw_tls_context *context = new_context(TLS_server_method());
    enum fgw_err err = FGW_OK;
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(context->openssl, cert_path) != 1) {
        err = fgw_error_set(error, FGW_ERR_CONFIG, "cannot load certificate %s: %s", cert_path,
                            fgw_tls_reason());
    } else if (SSL_CTX_use_PrivateKey_file(context->openssl, key_path, SSL_FILETYPE_PEM) != 1) {
        err = fgw_error_set(error, FGW_ERR_CONFIG, "cannot load key %s: %s", key_path,
                            fgw_tls_reason());
    } else if (SSL_CTX_check_private_key(context->openssl) != 1) {
        err = fgw_error_set(error, FGW_ERR_CONFIG, "key %s does not belong to certificate %s",
                            key_path, cert_path);
    }
    if (err != FGW_OK) {
        fgw_tls_unref(context);
        return err;
    }
    SSL_CTX_set_alpn_select_cb(context->openssl, select_alpn, NULL);
    (void)SSL_CTX_sess_set_cache_size(context->openssl, SESSION_CACHE_SIZE);
    (void)SSL_CTX_set_session_id_context(context->openssl, (const unsigned char *)"fgw", 3);
    *out_context = context;
    return FGW_OK;
}

enum fgw_err fgw_tls_client_new(const char *ca_path, struct fgw_tls_context **out_context,
                                struct fgw_error *error)
{
    struct fgw_tls_context *context = new_context(TLS_client_method());
    ERR_clear_error();
    int loaded = ca_path == NULL ? SSL_CTX_set_default_verify_paths(context->openssl)
                                 : SSL_CTX_load_verify_file(context->openssl, ca_path);
    if (loaded != 1) {
        enum fgw_err err =
            fgw_error_set(error, FGW_ERR_CONFIG, "cannot load certificate authorities %s: %s",
                          ca_path == NULL ? "of the system" : ca_path, fgw_tls_reason());
        fgw_tls_unref(context);
        return err;
    }
    SSL_CTX_set_verify(context->openssl, SSL_VERIFY_PEER, NULL);
    *out_context = context;
    return FGW_OK;
}

struct fgw_tls_context *fgw_tls_ref(struct fgw_tls_context *context)
{
    atomic_fetch_add(&context->references, 1);
    return context;
}

void fgw_tls_unref(struct fgw_tls_context *context)
{
    if (context != NULL && atomic_fetch_sub(&context->references, 1) == 1) {
        SSL_CTX_free(context->openssl);
        fgw_xfree(context);
    }
}
