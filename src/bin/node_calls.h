/* node_calls.h: the calls below /admin/nodes, for a running process and for `fgw node` that works on
 * the database itself. */
#ifndef FGW_BIN_NODE_CALLS_H
#define FGW_BIN_NODE_CALLS_H

#include <jansson.h>

#include "cluster/cluster.h"

/* What the calls work on. */
struct fgw_node_calls {
    struct fgw_cluster *cluster;
    struct fgw_storage *storage; /* NULL: this process has no store */
    /* see struct fgw_cluster_options; needed with a store */
    enum fgw_err (*named)(void *context, const struct fgw_storage_owner *owner,
                          const struct fgw_cid *root, struct fgw_cluster_named *out_named,
                          struct fgw_error *error);
    void *named_context;
};

/* An fgw_admin_nodes_fn; context: struct fgw_node_calls. */
int fgw_node_call(void *calls, const char *method, struct fgw_bytes name, struct fgw_bytes verb,
                  const json_t *body, json_t **out_answer);
/* Adds nodes, sets and warnings of the cluster. */
void fgw_node_calls_describe(struct fgw_cluster *cluster, json_t *document);

#endif
