/* role_job.h: work on the metadata and blobs of a role without serving: for verbs that need them as
 * serve or a proxy has them (import). No listener is opened. */
#ifndef FGW_BIN_ROLE_JOB_H
#define FGW_BIN_ROLE_JOB_H

#include "bin/server.h"

struct fgw_role_parts {
    struct fgw_workers *workers;
    struct fgw_meta *meta;
    struct fgw_blobs *blobs;
    const char *root_access_key;
    const struct fgw_config *config;
};

/* On the main thread, with the workers running; an exit code. */
typedef int fgw_role_job(void *context, const struct fgw_role_parts *parts);

/* The configuration stays the caller's. With the store of FGW_DATA and the metadata of FGW_META: */
int fgw_serve_job(const struct fgw_config *config, fgw_role_job *job, void *context);
/* With the database and the stores of the cluster: */
int fgw_proxy_job(const struct fgw_config *config, fgw_role_job *job, void *context);

#endif
