/* cmd_kuri.c: `fgw kuri`: a storage node of a cluster, which serves S3 too. */
#include "bin/cluster_role.h"

int fgw_cmd_kuri(const struct fgw_command *command)
{
    return fgw_cluster_role_run(command, true);
}
