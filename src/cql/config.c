/* config.c: see config.h. */
#include "cql/config_internal.h"

#include "base/check.h"
#include "net/tls.h"

enum {
    DEFAULT_PORT = 9042,
    DEFAULT_TIMEOUT_MS = 10000,
    DEFAULT_CONNECTIONS = 2,
    CONNECTIONS_MAX = 8,
    DEFAULT_QUEUE = 1024
};

static enum fgw_err parse_port(struct fgw_bytes text, uint16_t *out_port)
{
    uint64_t port = 0;
    if (fgw_bytes_to_u64(text, &port) != FGW_OK || port == 0 || port > UINT16_MAX) {
        return FGW_ERR_CONFIG;
    }
    *out_port = (uint16_t)port;
    return FGW_OK;
}

/* name, name:port, 1.2.3.4:port, ::1 (more than one colon: no port), [::1], [::1]:port */
static enum fgw_err parse_contact(struct fgw_bytes text, struct fgw_cql_contact *out)
{
    struct fgw_bytes host = text;
    struct fgw_bytes port = {0};
    size_t colon = fgw_bytes_find_byte(text, ':');
    if (fgw_bytes_starts_with(text, FGW_LIT("["))) {
        size_t end = fgw_bytes_find_byte(text, ']');
        host = fgw_bytes_sub(text, 1, end == SIZE_MAX ? 0 : end - 1);
        port = fgw_bytes_sub(text, end == SIZE_MAX ? text.len : end + 1, SIZE_MAX);
        if (port.len > 0 && port.ptr[0] != ':') {
            return FGW_ERR_CONFIG;
        }
    } else if (colon != SIZE_MAX && fgw_bytes_find(text, FGW_LIT(":"), colon + 1) == SIZE_MAX) {
        host = fgw_bytes_sub(text, 0, colon);
        port = fgw_bytes_sub(text, colon, SIZE_MAX);
    }
    if (host.len == 0 || host.len >= FGW_CQL_HOST_SIZE ||
        (port.len > 0 && parse_port(fgw_bytes_sub(port, 1, SIZE_MAX), &out->port) != FGW_OK)) {
        return FGW_ERR_CONFIG;
    }
    memcpy(out->host, host.ptr, host.len);
    out->host[host.len] = '\0';
    return FGW_OK;
}

static enum fgw_err parse_contacts(struct fgw_cql_config *config, const char *hosts,
                                   struct fgw_error *error)
{
    struct fgw_bytes rest = fgw_bytes_str(hosts == NULL ? "" : hosts);
    struct fgw_bytes part;
    config->contacts = fgw_xcalloc(FGW_CQL_CONTACTS_MAX, sizeof *config->contacts);
    while (fgw_bytes_split(&rest, ',', &part)) {
        part = fgw_bytes_trim(part);
        if (part.len == 0) {
            continue;
        }
        if (config->contact_count == FGW_CQL_CONTACTS_MAX) {
            return fgw_error_set(error, FGW_ERR_CONFIG, "FGW_CQL_HOSTS: at most %d hosts",
                                 FGW_CQL_CONTACTS_MAX);
        }
        struct fgw_cql_contact *contact = &config->contacts[config->contact_count];
        contact->port = config->port;
        if (parse_contact(part, contact) != FGW_OK) {
            return fgw_error_set(error, FGW_ERR_CONFIG,
                                 "FGW_CQL_HOSTS: \"%.*s\" is no host or host:port", FGW_FMT(part));
        }
        config->contact_count++;
    }
    if (config->contact_count == 0) {
        return fgw_error_set(error, FGW_ERR_CONFIG, "FGW_CQL_HOSTS: no database host is set");
    }
    return FGW_OK;
}

static char *copy_nonempty(const char *text)
{
    return text == NULL || text[0] == '\0' ? NULL : fgw_xstrdup(text);
}

static unsigned bounded(unsigned value, unsigned fallback, unsigned max)
{
    value = value == 0 ? fallback : value;
    return value > max ? max : value;
}

enum fgw_err fgw_cql_config_new(const struct fgw_cql_settings *settings,
                                struct fgw_cql_config **out_config, struct fgw_error *error)
{
    struct fgw_cql_config *config = fgw_xcalloc(1, sizeof *config);
    config->port = settings->port == 0 ? DEFAULT_PORT : settings->port;
    config->user = copy_nonempty(settings->user);
    config->password = fgw_xstrdup(settings->password == NULL ? "" : settings->password);
    config->local_dc = copy_nonempty(settings->local_dc);
    config->timeout_ms = settings->timeout_ms == 0 ? DEFAULT_TIMEOUT_MS : settings->timeout_ms;
    config->consistency =
        settings->consistency == FGW_CQL_ANY ? FGW_CQL_QUORUM : settings->consistency;
    config->contact_points_only = settings->contact_points_only;
    config->connections_per_node =
        bounded(settings->connections_per_node, DEFAULT_CONNECTIONS, CONNECTIONS_MAX);
    config->in_flight_max =
        bounded(settings->in_flight_max, FGW_CQL_IN_FLIGHT_MAX, FGW_CQL_IN_FLIGHT_MAX);
    config->queue_max = settings->queue_max == 0 ? DEFAULT_QUEUE : settings->queue_max;
    enum fgw_err err = parse_contacts(config, settings->hosts, error);
    if (err == FGW_OK && settings->tls_ca != NULL && settings->tls_ca[0] != '\0') {
        err = fgw_tls_client_new(settings->tls_ca, &config->tls, error);
    }
    if (err != FGW_OK) {
        fgw_cql_config_free(config);
        return err;
    }
    *out_config = config;
    return FGW_OK;
}

void fgw_cql_config_free(struct fgw_cql_config *config)
{
    if (config == NULL) {
        return;
    }
    fgw_tls_unref(config->tls);
    explicit_bzero(config->password, strlen(config->password));
    fgw_xfree(config->password);
    fgw_xfree(config->user);
    fgw_xfree(config->local_dc);
    fgw_xfree(config->contacts);
    fgw_xfree(config);
}

enum fgw_err fgw_cql_consistency_parse(struct fgw_bytes text, enum fgw_cql_consistency *out,
                                       struct fgw_error *error)
{
    static const struct {
        const char *name;
        enum fgw_cql_consistency level;
    } LEVELS[] = {
        {"QUORUM", FGW_CQL_QUORUM},
        {"LOCAL_QUORUM", FGW_CQL_LOCAL_QUORUM},
        {"EACH_QUORUM", FGW_CQL_EACH_QUORUM},
    };
    for (size_t i = 0; i < FGW_COUNT_OF(LEVELS); i++) {
        if (fgw_bytes_ieq_str(text, LEVELS[i].name)) {
            *out = LEVELS[i].level;
            return FGW_OK;
        }
    }
    return fgw_error_set(error, FGW_ERR_CONFIG,
                         "FGW_CQL_CONSISTENCY: \"%.*s\" is not QUORUM, LOCAL_QUORUM or EACH_QUORUM "
                         "(weaker levels read stale rows, ALL fails with one node down)",
                         FGW_FMT(text));
}
