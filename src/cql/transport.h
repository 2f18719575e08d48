/* transport.h: the byte stream below a connection, TCP or TLS: the only file pair of src/cql that
 * does I/O, a thin layer over src/net. One fiber may read and another write at the same time; both
 * suspend. The loop's thread. */
#ifndef FGW_CQL_TRANSPORT_H
#define FGW_CQL_TRANSPORT_H

#include "cql/config_internal.h"

struct fgw_conn;

/* Resolves, connects, and does the TLS handshake when the configuration wants TLS. deadline_ms: on
 * the loop's clock. out_address gets the IP address that answered.
 * FGW_ERR_TIMEOUT, FGW_ERR_UNAVAILABLE (refused, no route, unknown name, TLS not agreed on), each
 * with a text. */
enum fgw_err fgw_cql_transport_open(const struct fgw_cql_config *config,
                                    const struct fgw_cql_contact *contact, uint64_t deadline_ms,
                                    struct fgw_conn **out, char out_address[FGW_CQL_HOST_SIZE],
                                    struct fgw_error *error) FGW_MUST_CHECK;
/* At least one byte. deadline_ms 0: none. FGW_ERR_END: the peer closed. FGW_ERR_TIMEOUT,
 * FGW_ERR_IO. */
enum fgw_err fgw_cql_transport_read(struct fgw_conn *transport, void *out, size_t size,
                                    uint64_t deadline_ms, size_t *out_len) FGW_MUST_CHECK;
/* All of it, however long the peer takes (fgw_cql_conn_tick watches it). FGW_ERR_IO. */
enum fgw_err fgw_cql_transport_write(struct fgw_conn *transport,
                                     struct fgw_bytes bytes) FGW_MUST_CHECK;
/* Every wait in it, now and later, ends with FGW_ERR_IO; it must still be closed. */
void fgw_cql_transport_break(struct fgw_conn *transport);
/* No fiber may be waiting in it. Takes NULL. */
void fgw_cql_transport_close(struct fgw_conn *transport);

#endif
