#include "migrate/migrate_internal.h"
enum fgw_migrate_exit fgw_migrate_repair(struct fgw_migrate_engine *e)
{
    return fgw_migrate_finish(e, "repair", FGW_MIGRATE_EXIT_INTERNAL);
}
