/* client_internal.h: what client.c (connections) and client_call.c (calls) share. */
#ifndef FGW_HTTP_CLIENT_INTERNAL_H
#define FGW_HTTP_CLIENT_INTERNAL_H

#include "base/list.h"
#include "http/client.h"
#include "net/conn.h"

struct fgw_http_client {
    struct fgw_http_client_options options;
    char *address;
    char *host;
    char *tls_name;
    struct fgw_loop *loop;
    struct fgw_list idle; /* newest first */
    unsigned idle_count;
    unsigned open_calls;
};

/* fresh_only: do not reuse. *out_reused tells which it was. */
enum fgw_err fgw_http_client_take(struct fgw_http_client *client, bool fresh_only,
                                  uint64_t deadline_ms, struct fgw_conn **out_conn,
                                  bool *out_reused, struct fgw_error *error) FGW_MUST_CHECK;
void fgw_http_client_keep(struct fgw_http_client *client, struct fgw_conn *conn);

enum fgw_err fgw_http_call_begin_on(struct fgw_http_client *client,
                                    const struct fgw_http_call_options *options, bool fresh_only,
                                    struct fgw_http_call **out_call,
                                    struct fgw_error *error) FGW_MUST_CHECK;

#endif
