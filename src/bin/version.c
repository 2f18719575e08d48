/* version.c: what this binary was built from. The texts come from the build (version_data.h is
 * written by cmake/version.cmake, the rest are definitions of src/bin/CMakeLists.txt). */
#include <stdio.h>

#include "bin/command.h"
#include "version_data.h"

const char *fgw_version(void)
{
    return FGW_VERSION;
}

const char *fgw_version_commit(void)
{
    return FGW_COMMIT;
}

void fgw_print_version(void)
{
    (void)printf("fgw %s\ncommit %s\nbuild %s\ncompiler %s\nlibraries %s\n", FGW_VERSION,
                 FGW_COMMIT, FGW_BUILD_TYPE, __VERSION__, FGW_LIBRARIES);
}
