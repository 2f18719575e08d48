/* cmd_proxy.c: `fgw proxy`: an S3 frontend of a cluster. */
#include "bin/cluster_role.h"

int fgw_cmd_proxy(const struct fgw_command *command)
{
    return fgw_cluster_role_run(command, false);
}
