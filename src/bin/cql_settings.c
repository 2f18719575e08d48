/* cql_settings.c: see cql_settings.h. */
#include "bin/cql_settings.h"

/* "host:port,[v6]:port" */
static void append_hosts(struct fgw_buf *text, const struct fgw_config_addresses *hosts)
{
    for (size_t i = 0; i < hosts->count; i++) {
        bool v6 = strchr(hosts->items[i].host, ':') != NULL;
        (void)fgw_buf_appendf(text, v6 ? "%s[%s]:%u" : "%s%s:%u", i == 0 ? "" : ",",
                              hosts->items[i].host, (unsigned)hosts->items[i].port);
    }
    (void)fgw_buf_append_byte(text, 0);
}

enum fgw_err fgw_cql_config_of(const struct fgw_config *config, struct fgw_cql_config **out_config,
                               struct fgw_error *error)
{
    struct fgw_buf hosts;
    fgw_buf_init(&hosts, 0);
    append_hosts(&hosts, &config->cql_hosts);
    struct fgw_cql_settings settings = {.hosts = (const char *)hosts.ptr,
                                        .user = config->cql_user,
                                        .password = config->cql_password,
                                        .tls_ca = config->cql_tls_ca,
                                        .timeout_ms = (uint32_t)config->cql_timeout_ms,
                                        .local_dc = config->cql_local_dc};
    enum fgw_err err =
        fgw_cql_consistency_parse(fgw_bytes_str(config->values[FGW_SETTING_CQL_CONSISTENCY].text),
                                  &settings.consistency, error);
    if (err == FGW_OK) {
        err = fgw_cql_config_new(&settings, out_config, error);
    }
    fgw_buf_deinit(&hosts);
    return err;
}

const char *fgw_cql_replication_of(struct fgw_arena *arena, const struct fgw_config *config)
{
    const struct fgw_config_replication *replication = &config->cql_replication;
    if (!replication->network_topology) {
        return fgw_arena_printf(arena, "{'class': 'SimpleStrategy', 'replication_factor': %u}",
                                replication->count == 0 ? 1 : replication->items[0].copies);
    }
    const char *text = "{'class': 'NetworkTopologyStrategy'";
    for (size_t i = 0; i < replication->count; i++) {
        text = fgw_arena_printf(arena, "%s, '%s': %u", text, replication->items[i].data_centre,
                                replication->items[i].copies);
    }
    return fgw_arena_printf(arena, "%s}", text);
}
