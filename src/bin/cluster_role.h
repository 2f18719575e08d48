/* cluster_role.h: the life of a proxy or a storage node: listeners at once, then, in whatever order
 * things become available, database, identity, store, registry, S3 engine; /readyz says what is
 * still missing. */
#ifndef FGW_BIN_CLUSTER_ROLE_H
#define FGW_BIN_CLUSTER_ROLE_H

#include "bin/command.h"

/* Runs until SIGTERM or until the start failed for good; an exit code. */
int fgw_cluster_role_run(const struct fgw_command *command, bool storage_node);

#endif
