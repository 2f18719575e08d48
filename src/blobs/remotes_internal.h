/* remotes_internal.h: connections to stores, for link.c, remote.c and remote_stream.c. */
#ifndef FGW_BLOBS_REMOTES_INTERNAL_H
#define FGW_BLOBS_REMOTES_INTERNAL_H

#include "base/list.h"
#include "blobs/remote.h"
#include "blockapi/channel.h"
#include "event/fiber.h"
#include "event/workers.h"

struct fgw_remotes_worker {
    struct fgw_list idle; /* links, the one used last in front */
};

struct fgw_remotes {
    const struct fgw_bytes *secrets;
    size_t secret_count;
    struct fgw_tls_context *tls; /* for stores that speak it; NULL: none can be reached */
    unsigned workers;
    _Atomic bool closing;
    struct fgw_remotes_worker *per_worker;
};

/* One connection; idle in its worker's list or in the hands of one request. */
struct fgw_link {
    struct fgw_list node;
    struct fgw_remotes *remotes;
    struct fgw_conn *conn;
    struct fgw_channel channel;
    uint8_t store_id[FGW_STORAGE_ID_SIZE];
    char address[FGW_PLACEMENT_ADDRESS_SIZE];
    bool tls;
    uint64_t idle_since_ms;
    bool reused;
    struct fgw_buf request;
};

/* A kept connection or a fresh one. */
enum fgw_err fgw_link_take(struct fgw_remotes *remotes, const struct fgw_placement_member *member,
                           bool fresh, struct fgw_link **out_link,
                           struct fgw_error *error) FGW_MUST_CHECK;
/* usable: no request is under way on it; else it is closed. */
void fgw_link_give(struct fgw_link *link, bool usable);
/* Starts link->request with the request head. */
void fgw_link_request(struct fgw_link *link, const struct fgw_remote_target *target);
/* link->request and up to two more parts. */
enum fgw_err fgw_link_send(struct fgw_link *link, uint8_t kind, const struct fgw_bytes *more,
                           size_t more_count) FGW_MUST_CHECK;
/* The next frame that is not WORKING. */
enum fgw_err fgw_link_receive(struct fgw_link *link, uint8_t *out_kind,
                              struct fgw_bytes *out_payload) FGW_MUST_CHECK;
/* The answer; err of the store is returned, its text in *error. */
enum fgw_err fgw_link_answer(struct fgw_link *link, struct fgw_blockapi_answer *out_answer,
                             bool *out_store_said, struct fgw_error *error) FGW_MUST_CHECK;
void fgw_link_close(struct fgw_link *link);
enum fgw_err fgw_link_failed(const struct fgw_link *link, enum fgw_err err,
                             struct fgw_error *error);

#endif
