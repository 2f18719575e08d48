/* cql_settings.h: the settings FGW_CQL_* as the CQL client and CREATE KEYSPACE want them. */
#ifndef FGW_BIN_CQL_SETTINGS_H
#define FGW_BIN_CQL_SETTINGS_H

#include "config/config.h"
#include "cql/config.h"

/* FGW_ERR_CONFIG with the setting at fault. */
enum fgw_err fgw_cql_config_of(const struct fgw_config *config, struct fgw_cql_config **out_config,
                               struct fgw_error *error) FGW_MUST_CHECK;
/* "{'class': 'SimpleStrategy', 'replication_factor': 1}", in the arena. */
const char *fgw_cql_replication_of(struct fgw_arena *arena, const struct fgw_config *config);

#endif
