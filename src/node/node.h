/* node.h: the block API of a storage node: sessions of proxies and other nodes on the S3 port, below
 * /_fgw/v1/ (docs/formats/block-api.md, design/cluster.md sections 1, 3, 4).
 *
 * The node acknowledges only while it is the owner of its store: the registry renews it
 * (fgw_node_renewed); 30 s without, or a request that names a higher epoch, and writes are refused.
 * Reads go on: blocks are named by their content.
 * Threads: fgw_node_handle on workers; renewed and fence from anywhere; new, stop and free from a
 * thread that is no worker.
 */
#ifndef FGW_NODE_NODE_H
#define FGW_NODE_NODE_H

#include "event/workers.h"
#include "http/server.h"
#include "storage/storage.h"

struct fgw_node;

enum { FGW_NODE_RENEW_LIMIT_MS = 30000 };

struct fgw_node_options {
    struct fgw_storage *storage;
    struct fgw_workers *workers;
    const struct fgw_bytes *secrets; /* FGW_CLUSTER_SECRET; copied */
    size_t secret_count;
    uint64_t epoch; /* of this process's hold of the store */
    /* The epoch of a replica set as known here, 0: unknown. Any worker; NULL: no sets are known. */
    uint64_t (*set_epoch)(void *context, uint64_t set);
    void *set_context;
};

struct fgw_node_stats {
    uint64_t sessions, sessions_total, refused, requests, bytes_in, bytes_out;
    bool fenced;
};

struct fgw_node *fgw_node_new(const struct fgw_node_options *options);
/* Requests below /_fgw/v1/; a fgw_http_handler with the node as context. */
void fgw_node_handle(void *node, struct fgw_http_exchange *exchange);
/* The own row was read and showed the own epoch; sent_ms: fgw_clock_boot_ns() / 10^6 when the read
 * was *sent*. */
void fgw_node_renewed(struct fgw_node *node, uint64_t sent_boot_ms);
/* Another process has the store: nothing is acknowledged any more. */
void fgw_node_fence(struct fgw_node *node, uint64_t higher_epoch);
/* Before the own row gets this higher epoch: requests that name it are ours. */
void fgw_node_take(struct fgw_node *node, uint64_t epoch);
/* FGW_OK while it may acknowledge, else FGW_ERR_CANCELLED. For the writes of this process too. */
enum fgw_err fgw_node_may_acknowledge(struct fgw_node *node) FGW_MUST_CHECK;
void fgw_node_stats(struct fgw_node *node, struct fgw_node_stats *out_stats);
/* Breaks all sessions and waits for their fibers. Takes NULL. */
void fgw_node_stop(struct fgw_node *node);
/* After stop. Takes NULL. */
void fgw_node_free(struct fgw_node *node);

#endif
