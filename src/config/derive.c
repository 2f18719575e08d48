/* derive.c: defaults that depend on the machine or on other settings ("=..." in settings.def), and
 * the rules between settings. Reads the machine (cores, memory, host name, machine id), opens
 * nothing else. */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "config/config_internal.h"

static const uint64_t MIB = 1ULL << 20;

/* -- the machine ---------------------------------------------------------------------------- */

/* First line of a small file, or "" when it cannot be read. */
static void first_line(const char *path, char *out, size_t size)
{
    struct fgw_buf content;
    fgw_buf_init(&content, 4096);
    out[0] = '\0';
    if (config_read_file(path, &content) == FGW_OK) {
        struct fgw_bytes rest = fgw_buf_bytes(&content);
        struct fgw_bytes line = {NULL, 0};
        (void)fgw_bytes_split(&rest, '\n', &line);
        (void)snprintf(out, size, "%.*s", FGW_FMT(line));
    }
    fgw_buf_deinit(&content);
}

static unsigned core_count(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < 1 ? 1 : count > 256 ? 256 : (unsigned)count;
}

/* Of the machine, or of the control group that this process lives in. */
static uint64_t machine_memory(void)
{
    char text[64];
    uint64_t limit;
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    first_line("/sys/fs/cgroup/memory.max", text, sizeof text);
    if (fgw_bytes_to_u64(fgw_bytes_str(text), &limit) == FGW_OK && limit < bytes) {
        bytes = limit;
    }
    return bytes;
}

static void host_name(char *out, size_t size)
{
    if (gethostname(out, size) != 0 || out[0] == '\0') {
        (void)snprintf(out, size, "localhost");
    }
    out[size - 1] = '\0';
}

/* The first label in lower case; what a node id may not hold becomes a dash. */
static void node_id_of_host(char *out, size_t size)
{
    host_name(out, size);
    size_t len = 0;
    for (; out[len] != '\0' && out[len] != '.' && len < 32; len++) {
        char c = out[len];
        c = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
        out[len] = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
    }
    out[len] = '\0';
    if (!fgw_config_node_id_valid(out)) {
        (void)snprintf(out, size, "localhost");
    }
}

/* -- values --------------------------------------------------------------------------------- */

static bool is_open(const struct fgw_config *config, enum fgw_setting_id id)
{
    const char *usual = setting_default(id, config->role);
    return config->values[id].text == NULL && usual[0] == '=';
}

static const char *keep(struct fgw_config *config, enum fgw_setting_id id, const char *text)
{
    const char *kept = fgw_arena_printf(&config->arena, "%s", text);
    config->values[id].text = kept;
    return kept;
}

static void derive_bounds(struct fgw_config *config)
{
    char text[64];
    if (is_open(config, FGW_SETTING_THREADS)) {
        config->threads = core_count();
        (void)snprintf(text, sizeof text, "%u", config->threads);
        (void)keep(config, FGW_SETTING_THREADS, text);
    }
    if (is_open(config, FGW_SETTING_MEMORY)) {
        uint64_t mebibytes = machine_memory() / 4 / MIB;
        mebibytes = mebibytes < 64 ? 64 : mebibytes > 4096 ? 4096 : mebibytes;
        config->memory_bytes = mebibytes * MIB;
        (void)snprintf(text, sizeof text, "%lluMiB", (unsigned long long)mebibytes);
        (void)keep(config, FGW_SETTING_MEMORY, text);
    }
    if (is_open(config, FGW_SETTING_MIN_FREE)) {
        config->min_free_bytes = FGW_CONFIG_AUTO;
        (void)keep(config, FGW_SETTING_MIN_FREE,
                   setting_default(FGW_SETTING_MIN_FREE, config->role) + 1);
    }
    if (is_open(config, FGW_SETTING_MIN_REPLICAS)) {
        (void)keep(config, FGW_SETTING_MIN_REPLICAS,
                   setting_default(FGW_SETTING_MIN_REPLICAS, config->role) + 1);
    }
    if (is_open(config, FGW_SETTING_LOG_FORMAT)) {
        bool terminal = isatty(STDERR_FILENO) == 1;
        config->log_format = terminal ? FGW_CONFIG_LOG_TEXT : FGW_CONFIG_LOG_JSON;
        (void)keep(config, FGW_SETTING_LOG_FORMAT, terminal ? "text" : "json");
    }
    if (is_open(config, FGW_SETTING_MIGRATE)) {
        config->migrate = FGW_CONFIG_MIGRATE_SPLIT;
        (void)keep(config, FGW_SETTING_MIGRATE,
                   setting_default(FGW_SETTING_MIGRATE, config->role) + 1);
    }
}

void fgw_config_node_keyspace(const char *node_id, char out[FGW_CONFIG_KEYSPACE_SIZE])
{
    size_t len = (size_t)snprintf(out, FGW_CONFIG_KEYSPACE_SIZE, "filecoingw_");
    for (; *node_id != '\0' && len < FGW_CONFIG_KEYSPACE_SIZE - 1; node_id++) {
        if (*node_id != '-') {
            out[len++] = *node_id;
        }
    }
    out[len] = '\0';
}

static void derive_node_url(struct fgw_config *config)
{
    if (!is_open(config, FGW_SETTING_NODE_URL) || config->s3_listen.count == 0) {
        return;
    }
    char host[256];
    const struct fgw_config_address *first = &config->s3_listen.items[0];
    if (strcmp(first->host, "0.0.0.0") == 0 || strcmp(first->host, "::") == 0) {
        host_name(host, sizeof host);
    } else {
        bool v6 = strchr(first->host, ':') != NULL;
        (void)snprintf(host, sizeof host, v6 ? "[%s]" : "%s", first->host);
    }
    const char *url = fgw_arena_printf(&config->arena, "http%s://%s:%u",
                                       config->tls_cert == NULL ? "" : "s", host, first->port);
    config->node_url = keep(config, FGW_SETTING_NODE_URL, url);
}

static void derive_identity(struct fgw_config *config)
{
    char text[256];
    char keyspace[FGW_CONFIG_KEYSPACE_SIZE];
    if (is_open(config, FGW_SETTING_NODE_ID)) {
        node_id_of_host(text, sizeof text);
        config->node_id = keep(config, FGW_SETTING_NODE_ID, text);
    }
    if (is_open(config, FGW_SETTING_HOST)) {
        first_line("/etc/machine-id", text, sizeof text);
        if (text[0] == '\0') {
            host_name(text, sizeof text);
        }
        config->host = keep(config, FGW_SETTING_HOST, text);
    }
    if (is_open(config, FGW_SETTING_CQL_NODE_KEYSPACE) && config->node_id != NULL) {
        fgw_config_node_keyspace(config->node_id, keyspace);
        config->cql_node_keyspace = keep(config, FGW_SETTING_CQL_NODE_KEYSPACE, keyspace);
    }
    if (config->cql_node_keyspace != NULL && strcmp(config->cql_node_keyspace, "none") == 0) {
        config->cql_node_keyspace = NULL;
    }
    derive_node_url(config);
}

static void derive_host_ports(struct fgw_config *config)
{
    size_t count = config->cql_hosts.count;
    struct fgw_config_address *hosts =
        fgw_arena_zalloc(&config->arena, (count + 1) * sizeof *hosts);
    for (size_t i = 0; i < count; i++) {
        hosts[i] = config->cql_hosts.items[i];
        if (hosts[i].port == 0) {
            hosts[i].port = (uint16_t)config->cql_port;
        }
    }
    config->cql_hosts.items = hosts;
}

void derive_values(struct load *load)
{
    derive_bounds(load->config);
    derive_identity(load->config);
    derive_host_ports(load->config);
}

/* -- rules between settings ----------------------------------------------------------------- */

static bool is_set(const struct fgw_config *config, enum fgw_setting_id id)
{
    return config->values[id].text != NULL;
}

static void require(struct load *load, enum fgw_setting_id id, const char *why)
{
    if (is_set(load->config, id)) {
        return;
    }
    const struct setting *setting = setting_of(id);
    char flag[FLAG_SIZE];
    setting_flag(setting, flag);
    load_error(load,
               "%s (not set) is required for %s; allowed: %s%s; set it by --%s, environment "
               "or file",
               setting->name, why, setting->allowed,
               setting_is_secret(setting) ? " characters" : "", flag);
}

static void require_pair(struct load *load, enum fgw_setting_id a, enum fgw_setting_id b)
{
    if (is_set(load->config, a) != is_set(load->config, b)) {
        bool first = is_set(load->config, a);
        load_error(load, "%s is set (%s) without %s; allowed: both or none",
                   setting_of(first ? a : b)->name, load->config->values[first ? a : b].where,
                   setting_of(first ? b : a)->name);
    }
}

static bool addresses_collide(const struct fgw_config_address *a,
                              const struct fgw_config_address *b)
{
    bool any_a = strcmp(a->host, "0.0.0.0") == 0 || strcmp(a->host, "::") == 0;
    bool any_b = strcmp(b->host, "0.0.0.0") == 0 || strcmp(b->host, "::") == 0;
    return a->port == b->port && (any_a || any_b || strcmp(a->host, b->host) == 0);
}

static void check_listeners(struct load *load)
{
    const struct fgw_config *config = load->config;
    for (size_t i = 0; i < config->s3_listen.count; i++) {
        for (size_t j = 0; j < config->ops_listen.count; j++) {
            const struct fgw_config_address *s3 = &config->s3_listen.items[i];
            if (addresses_collide(s3, &config->ops_listen.items[j])) {
                load_error(load,
                           "FGW_OPS_LISTEN=%s (%s): port %u is also in FGW_S3_LISTEN=%s; "
                           "allowed: different ports",
                           config->values[FGW_SETTING_OPS_LISTEN].text,
                           config->values[FGW_SETTING_OPS_LISTEN].where, s3->port,
                           config->values[FGW_SETTING_S3_LISTEN].text);
            }
        }
    }
}

static void check_database(struct load *load)
{
    const struct fgw_config *config = load->config;
    bool cluster = config->role == FGW_ROLE_PROXY || config->role == FGW_ROLE_KURI;
    if ((cluster || config->role == FGW_ROLE_DB_INIT) && config->meta == FGW_CONFIG_META_ROCKS) {
        load_error(load,
                   "FGW_META=rocks (%s): fgw %s keeps its metadata in the database; "
                   "allowed: cql",
                   config->values[FGW_SETTING_META].where, fgw_role_name(config->role));
    }
    require_pair(load, FGW_SETTING_CQL_USER, FGW_SETTING_CQL_PASSWORD);
    if (config->meta != FGW_CONFIG_META_CQL) {
        return;
    }
    require(load, FGW_SETTING_CQL_HOSTS, "FGW_META=cql");
    if (config->cql_keyspace != NULL && config->cql_node_keyspace != NULL &&
        strcmp(config->cql_keyspace, config->cql_node_keyspace) == 0) {
        load_error(load,
                   "FGW_CQL_NODE_KEYSPACE=%s (%s) is the shared keyspace; allowed: another "
                   "name, or none",
                   config->cql_node_keyspace, config->values[FGW_SETTING_CQL_NODE_KEYSPACE].where);
    }
}

static void check_cluster(struct load *load)
{
    const struct fgw_config *config = load->config;
    bool cluster = config->role == FGW_ROLE_PROXY || config->role == FGW_ROLE_KURI;
    const char *why = config->role == FGW_ROLE_PROXY ? "fgw proxy" : "fgw kuri";
    if (cluster) {
        require(load, FGW_SETTING_ROOT_ACCESS_KEY, why);
        require(load, FGW_SETTING_ROOT_SECRET_KEY, why);
        require(load, FGW_SETTING_CLUSTER_SECRET, why);
    } else {
        require_pair(load, FGW_SETTING_ROOT_ACCESS_KEY, FGW_SETTING_ROOT_SECRET_KEY);
    }
    if (config->role == FGW_ROLE_SERVE && config->meta == FGW_CONFIG_META_CQL) {
        require(load, FGW_SETTING_CLUSTER_SECRET, "fgw serve with FGW_META=cql");
    }
    if (config->min_replicas > config->replicas) {
        load_error(load, "FGW_MIN_REPLICAS=%u (%s) is more than FGW_REPLICAS=%u; allowed: 1..%u",
                   config->min_replicas, config->values[FGW_SETTING_MIN_REPLICAS].where,
                   config->replicas, config->replicas);
    }
}

void check_together(struct load *load)
{
    const struct fgw_config *config = load->config;
    if (config->role == FGW_ROLE_KURI) {
        require(load, FGW_SETTING_DATA, "fgw kuri");
    }
    check_database(load);
    check_cluster(load);
    require_pair(load, FGW_SETTING_TLS_CERT, FGW_SETTING_TLS_KEY);
    check_listeners(load);
    if (config->sync == FGW_CONFIG_SYNC_OFF) {
        load_warning(load,
                     "FGW_SYNC=off (%s): acknowledged writes are lost when the machine stops "
                     "suddenly; for benchmarks and throw-away data only",
                     config->values[FGW_SETTING_SYNC].where);
    }
}
