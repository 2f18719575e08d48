/* conn_tls.c: TLS of a connection. OpenSSL reads from the socket itself (reading ahead, so that one
 * system call brings several records) and writes into a buffer of ours, which then goes out in one
 * send: 64 KiB of an answer are one system call instead of four. Its calls therefore never wait in
 * the middle, and a reading and a writing fiber can share the session. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/conn_internal.h"
#include "net/tls_internal.h"

enum {
    RECORD_SIZE = 16 * 1024,
    WRITE_STEP = 64 * 1024,     /* plain bytes encrypted between two sends */
    KEEP_BUFFER_SIZE = 4 * 1024 /* of an idle connection */
};

struct fgw_conn_tls {
    SSL *ssl;
    struct fgw_buf out; /* encrypted, not yet sent */
    struct fgw_tls_context *context;
};

/* -- the BIO between OpenSSL and the connection ------------------------------------------------ */

static int bio_read(BIO *bio, char *out, int size)
{
    struct fgw_conn *conn = BIO_get_data(bio);
    size_t got = 0;
    BIO_clear_retry_flags(bio);
    switch (fgw_conn_socket_read(conn, out, (size_t)size, &got)) {
    case FGW_OK:
        return (int)got;
    case FGW_ERR_AGAIN:
        BIO_set_retry_read(bio);
        return -1;
    case FGW_ERR_END:
        return 0;
    default:
        return -1;
    }
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
    struct fgw_conn *conn = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    (void)fgw_buf_append(&conn->tls->out, fgw_bytes(bytes, (size_t)len));
    return len;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static BIO_METHOD *bio_method(void)
{
    static _Atomic(BIO_METHOD *) shared;
    BIO_METHOD *method = shared;
    if (method == NULL) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "fgw connection");
        FGW_CHECK(method != NULL);
        (void)BIO_meth_set_read(method, bio_read);
        (void)BIO_meth_set_write(method, bio_write);
        (void)BIO_meth_set_ctrl(method, bio_ctrl);
        BIO_METHOD *expected = NULL;
        if (!__atomic_compare_exchange_n((BIO_METHOD **)&shared, &expected, method, false,
                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            BIO_meth_free(method);
            method = expected;
        }
    }
    return method;
}

static void attach(struct fgw_conn *conn, struct fgw_tls_context *context)
{
    struct fgw_conn_tls *tls = fgw_xcalloc(1, sizeof *tls);
    fgw_buf_init(&tls->out, 0);
    tls->context = fgw_tls_ref(context);
    tls->ssl = SSL_new(fgw_tls_openssl(context));
    BIO *bio = BIO_new(bio_method());
    FGW_CHECK(tls->ssl != NULL && bio != NULL);
    BIO_set_data(bio, conn);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    conn->tls = tls;
}

/* -- moving bytes ------------------------------------------------------------------------------ */

/* The buffer is taken out while it is sent: a reading fiber may make OpenSSL write meanwhile. */
static enum fgw_err flush_out(struct fgw_conn *conn)
{
    enum fgw_err err = FGW_OK;
    while (conn->tls->out.len > 0 && err == FGW_OK) {
        struct fgw_buf sending = conn->tls->out;
        fgw_buf_init(&conn->tls->out, 0);
        struct iovec iov = {sending.ptr, sending.len};
        err = fgw_conn_socket_writev(conn, &iov, 1, false);
        if (conn->tls->out.ptr == NULL && sending.cap <= KEEP_BUFFER_SIZE) {
            fgw_buf_clear(&sending);
            conn->tls->out = sending;
        } else {
            fgw_buf_deinit(&sending);
        }
    }
    if (err != FGW_OK) {
        conn->broken = true; /* a record may have gone out in part */
    }
    return err;
}

enum fgw_err fgw_conn_tls_try_read(struct fgw_conn *conn, void *out, size_t size, size_t *out_len)
{
    size_t got = 0;
    ERR_clear_error();
    int rc = SSL_read_ex(conn->tls->ssl, out, size, &got);
    if (rc == 1) {
        *out_len = got;
        return FGW_OK;
    }
    switch (SSL_get_error(conn->tls->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return FGW_ERR_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return FGW_ERR_END;
    default:
        conn->broken = true;
        return FGW_ERR_CLIENT_GONE;
    }
}

static enum fgw_err encrypt(struct fgw_conn *conn, const void *bytes, size_t len)
{
    size_t written = 0;
    ERR_clear_error();
    if (SSL_write_ex(conn->tls->ssl, bytes, len, &written) != 1 || written != len) {
        conn->broken = true;
        return FGW_ERR_CLIENT_GONE;
    }
    return FGW_OK;
}

/* Small pieces become one record: each costs a header, a tag and the cipher's set-up. */
static size_t gather(struct iovec **iov, unsigned *count, uint8_t *out)
{
    size_t len = 0;
    while (*count > 0 && len < RECORD_SIZE) {
        size_t step = (*iov)->iov_len < RECORD_SIZE - len ? (*iov)->iov_len : RECORD_SIZE - len;
        if (step > 0) {
            memcpy(out + len, (*iov)->iov_base, step);
        }
        len += step;
        (*iov)->iov_base = (uint8_t *)(*iov)->iov_base + step;
        (*iov)->iov_len -= step;
        if ((*iov)->iov_len == 0) {
            (*iov)++;
            (*count)--;
        }
    }
    return len;
}

enum fgw_err fgw_conn_tls_writev(struct fgw_conn *conn, struct iovec *iov, unsigned count)
{
    static _Thread_local uint8_t record[RECORD_SIZE];
    enum fgw_err err = conn->broken ? FGW_ERR_CLIENT_GONE : FGW_OK;
    while (count > 0 && err == FGW_OK) {
        if (iov->iov_len >= RECORD_SIZE) {
            size_t step = iov->iov_len < WRITE_STEP ? iov->iov_len : WRITE_STEP;
            err = encrypt(conn, iov->iov_base, step);
            iov->iov_base = (uint8_t *)iov->iov_base + step;
            iov->iov_len -= step;
        } else {
            size_t len = gather(&iov, &count, record);
            err = len == 0 ? FGW_OK : encrypt(conn, record, len);
        }
        if (err == FGW_OK && (count == 0 || conn->tls->out.len >= WRITE_STEP)) {
            err = flush_out(conn);
        }
    }
    return err;
}

bool fgw_conn_tls_has_buffered(const struct fgw_conn *conn)
{
    return SSL_has_pending(conn->tls->ssl) == 1;
}

void fgw_conn_tls_shutdown(struct fgw_conn *conn)
{
    if (conn->tls == NULL || conn->broken || !SSL_is_init_finished(conn->tls->ssl)) {
        return;
    }
    ERR_clear_error();
    (void)SSL_shutdown(conn->tls->ssl);
    if (conn->tls->out.len > 0) {
        (void)send(conn->fd, conn->tls->out.ptr, conn->tls->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        fgw_buf_clear(&conn->tls->out);
    }
}

void fgw_conn_tls_free(struct fgw_conn *conn)
{
    if (conn->tls != NULL) {
        SSL_free(conn->tls->ssl);
        fgw_buf_deinit(&conn->tls->out);
        fgw_tls_unref(conn->tls->context);
        fgw_xfree(conn->tls);
        conn->tls = NULL;
    }
}

/* -- handshakes -------------------------------------------------------------------------------- */

static enum fgw_err handshake(struct fgw_conn *conn, struct fgw_error *error)
{
    for (;;) {
        ERR_clear_error();
        int rc = SSL_do_handshake(conn->tls->ssl);
        int why = rc == 1 ? SSL_ERROR_NONE : SSL_get_error(conn->tls->ssl, rc);
        if (why != SSL_ERROR_NONE && why != SSL_ERROR_WANT_READ) {
            long verified = SSL_get_verify_result(conn->tls->ssl);
            (void)fgw_error_set(error, FGW_ERR_CLIENT_GONE, "TLS handshake failed: %s",
                                verified != X509_V_OK ? X509_verify_cert_error_string(verified)
                                                      : fgw_tls_reason());
            (void)flush_out(conn); /* the alert */
            conn->broken = true;
            return FGW_ERR_CLIENT_GONE;
        }
        enum fgw_err err = flush_out(conn);
        if (err == FGW_OK && rc != 1) {
            err = fgw_conn_wait_ready(conn, FGW_POLL_READ);
        }
        if (err != FGW_OK || rc == 1) {
            return err;
        }
    }
}

enum fgw_err fgw_conn_start_tls_server(struct fgw_conn *conn, struct fgw_tls_context *context)
{
    attach(conn, context);
    SSL_set_accept_state(conn->tls->ssl);
    return handshake(conn, NULL);
}

enum fgw_err fgw_conn_start_tls_client(struct fgw_conn *conn, struct fgw_tls_context *context,
                                       const char *host, struct fgw_error *error)
{
    attach(conn, context);
    SSL_set_connect_state(conn->tls->ssl);
    X509_VERIFY_PARAM *param = SSL_get0_param(conn->tls->ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) != 1) {
        (void)SSL_set_tlsext_host_name(conn->tls->ssl, host);
        X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        if (X509_VERIFY_PARAM_set1_host(param, host, 0) != 1) {
            return fgw_error_set(error, FGW_ERR_CONFIG, "bad TLS host name %s", host);
        }
    }
    return handshake(conn, error);
}
