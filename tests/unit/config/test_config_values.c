/* test_config_values.c: what each type of value takes and refuses. */
#include "test_config.h"

#include <stdio.h>

/* One flag on `serve`: it must load, and the caller looks at the field. */
static void load_flag(const char *flag, const char *value, struct loaded *out)
{
    char argument[1024];
    (void)snprintf(argument, sizeof argument, "--%s=%s", flag, value);
    load_from(FGW_ROLE_SERVE, argument, NULL, out);
    if (out->err != FGW_OK) {
        print_error("%s: %s", argument, (const char *)out->errors.ptr);
        fail();
    }
}

static void refuse_each(const char *flag, const char *const *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char argument[1024];
        (void)snprintf(argument, sizeof argument, "--%s=%s", flag, values[i]);
        expect_errors(FGW_ROLE_SERVE, argument, NULL, 1, "; allowed: ");
    }
}
#define REFUSE_EACH(flag, ...) \
    do { \
        static const char *const values[] = {__VA_ARGS__}; \
        refuse_each(flag, values, sizeof values / sizeof values[0]); \
    } while (0)

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } GOOD[] = {{"65536B", 65536},   {"64KiB", 65536},  {"64kib", 65536},
                {" 64 KiB ", 65536}, {"1MiB", 1048576}, {"0001MiB", 1048576}};
    struct loaded got;
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        load_flag("max-header", GOOD[i].text, &got);
        assert_true(got.config.max_header_bytes == GOOD[i].bytes);
        loaded_free(&got);
    }
    REFUSE_EACH("max-header", "65536", "64K", "64KB", "KiB", "-64KiB", "6.4MiB", "64KiBs", "1MiB1",
                "7KiB", "2MiB", "99999999999999999999KiB", "18446744073709551615TiB");
    load_flag("min-body-rate", "2KiB/s", &got);
    assert_true(got.config.min_body_rate == 2048);
    loaded_free(&got);
    REFUSE_EACH("min-body-rate", "2KiB", "/s", "2/s", "2KiB/m");
}

static void durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ms;
    } GOOD[] = {{"1500ms", 1500}, {"2s", 2000},      {"3m", 180000},
                {"4h", 14400000}, {"5d", 432000000}, {"0s", 0}};
    struct loaded got;
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        load_flag("release-delay", GOOD[i].text, &got);
        assert_true(got.config.release_delay_ms == GOOD[i].ms);
        loaded_free(&got);
    }
    REFUSE_EACH("release-delay", "10", "1w", "1h30m", "-1s", "366d", "1.5h", "99999999999999999d",
                "ms");
}

static void numbers_switches_words(void **state)
{
    (void)state;
    struct loaded got;
    REFUSE_EACH("threads", "0", "257", "two", "+1", "1 2", "0x1");
    REFUSE_EACH("dead-percent", "0", "101");
    REFUSE_EACH("s3-strict-aws", "maybe", "2");
    REFUSE_EACH("sync", "sometimes", "alway");
    REFUSE_EACH("cql-consistency", "QUORUMS", "ANY");
    load_from(FGW_ROLE_SERVE, "--s3-strict-aws|--threads|2", NULL, &got);
    assert_true(got.config.s3_strict_aws && got.config.threads == 2);
    loaded_free(&got);
    load_flag("s3-strict-aws", "OFF", &got);
    assert_false(got.config.s3_strict_aws);
    loaded_free(&got);
    load_flag("cql-consistency", "local_quorum", &got);
    assert_int_equal(got.config.cql_consistency, FGW_CONFIG_CL_LOCAL_QUORUM);
    loaded_free(&got);
    load_flag("sync", "off", &got);
    assert_int_equal(got.config.sync, FGW_CONFIG_SYNC_OFF);
    assert_non_null(strstr((const char *)got.warnings.ptr, "FGW_SYNC=off"));
    loaded_free(&got);
}

static void log_levels(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum fgw_log_level level;
    } GOOD[] = {{"info", FGW_LOG_INFO},   {"INFO", FGW_LOG_INFO},   {"warning", FGW_LOG_WARN},
                {"warn", FGW_LOG_WARN},   {"err", FGW_LOG_ERROR},   {"error", FGW_LOG_ERROR},
                {" info ", FGW_LOG_INFO}, {"Debug", FGW_LOG_DEBUG}, {"trace", FGW_LOG_TRACE},
                {"", FGW_LOG_INFO}};
    static const struct {
        const char *text;
        enum fgw_log_level level;
    } LISTS[] = {{"error,backend=info", FGW_LOG_INFO},
                 {"main:info,*:error", FGW_LOG_INFO},
                 {"ribs:.*=debug,gw/.*=debug,ribs:rbdeal=info", FGW_LOG_DEBUG},
                 {"warn", FGW_LOG_WARN},
                 {" a = ERROR , b=dpanic", FGW_LOG_ERROR}};
    struct loaded got;
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        load_flag("log-level", GOOD[i].text, &got);
        assert_int_equal(got.config.log_level, GOOD[i].level);
        loaded_free(&got);
    }
    REFUSE_EACH("log-level", "1", "nonsense", "error,backend=info", "main:info", "trace=");
    for (size_t i = 0; i < sizeof LISTS / sizeof LISTS[0]; i++) {
        char environment[128];
        (void)snprintf(environment, sizeof environment, "RIBS_LOGLEVEL=%s", LISTS[i].text);
        load_from(FGW_ROLE_SERVE, NULL, environment, &got);
        assert_int_equal(got.err, FGW_OK);
        assert_int_equal(got.config.log_level, LISTS[i].level);
        loaded_free(&got);
    }
    expect_errors(FGW_ROLE_SERVE, NULL, "RIBS_LOGLEVEL=trace=", 1, "unknown level");
    expect_errors(FGW_ROLE_SERVE, NULL, "RIBS_LOGLEVEL=a=info,,", 1, "unknown level");
}

static void listeners(void **state)
{
    (void)state;
    struct loaded got;
    load_flag("s3-listen", "[::]:8078, :80,localhost:81, *:82,[::1]:65535", &got);
    static const struct fgw_config_address WANT[] = {
        {"::", 8078}, {"0.0.0.0", 80}, {"127.0.0.1", 81}, {"0.0.0.0", 82}, {"::1", 65535}};
    assert_int_equal(got.config.s3_listen.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(got.config.s3_listen.items[i].host, WANT[i].host);
        assert_int_equal(got.config.s3_listen.items[i].port, WANT[i].port);
    }
    loaded_free(&got);
    load_flag("ops-listen", "", &got);
    assert_int_equal(got.config.ops_listen.count, 0);
    loaded_free(&got);
    REFUSE_EACH("s3-listen", "8078", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
                "127.0.0.1:80x", "example.com:80", "::1:80", "[::1]", "[::1]80", "[::1:80",
                "1.2.3:80", ":80,:80", ":80,", ",", "[127.0.0.1:80");
}

static void hosts_names_nodes(void **state)
{
    (void)state;
    struct loaded got;
    load_flag("cql-hosts", "db1, db2.example:9043,::1,[::2]:9044", &got);
    assert_int_equal(got.config.cql_hosts.count, 4);
    assert_int_equal(got.config.cql_hosts.items[0].port, 9042);
    assert_int_equal(got.config.cql_hosts.items[1].port, 9043);
    assert_string_equal(got.config.cql_hosts.items[2].host, "::1");
    assert_int_equal(got.config.cql_hosts.items[3].port, 9044);
    loaded_free(&got);
    REFUSE_EACH("cql-hosts", "db:", "db:x", "a b", "[::2", "-db", "a,,b", "x/y");
    load_flag("locations", "EU,eu-west-1", &got);
    assert_int_equal(got.config.locations.count, 2);
    loaded_free(&got);
    REFUSE_EACH("locations", "a b", ",", "x_y");
    REFUSE_EACH("domain", "a:80", "http://a", "a,,b");
    REFUSE_EACH("region", "EU", "a b", "0123456789012345678901234567890123");
    REFUSE_EACH("cql-keyspace", "1a", "A", "a-b", "_a");
    REFUSE_EACH("node-id", "A", "---", "a_b", "0123456789012345678901234567890123");
    static const char *const KEYS[] = {"ab", "a/b/c", "a b c", "a=bc", "a,bc"};
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        char environment[128];
        (void)snprintf(environment, sizeof environment,
                       "FGW_ROOT_SECRET_KEY=sixteen-or-longer|FGW_ROOT_ACCESS_KEY=%s", KEYS[i]);
        expect_errors(FGW_ROLE_SERVE, NULL, environment, 1, "not of the form allowed");
    }
}

static void replication(void **state)
{
    (void)state;
    struct loaded got;
    load_flag("cql-replication", "SimpleStrategy:3", &got);
    assert_false(got.config.cql_replication.network_topology);
    assert_int_equal(got.config.cql_replication.items[0].copies, 3);
    loaded_free(&got);
    load_flag("cql-replication", "NetworkTopologyStrategy:dc1=3,dc-2=2", &got);
    assert_true(got.config.cql_replication.network_topology);
    assert_int_equal(got.config.cql_replication.count, 2);
    assert_string_equal(got.config.cql_replication.items[1].data_centre, "dc-2");
    assert_int_equal(got.config.cql_replication.items[1].copies, 2);
    loaded_free(&got);
    REFUSE_EACH("cql-replication", "SimpleStrategy", "SimpleStrategy:0", "SimpleStrategy:x", "3",
                "NetworkTopologyStrategy:", "NetworkTopologyStrategy:dc1",
                "NetworkTopologyStrategy:dc1=0", "NetworkTopologyStrategy:a'b=1",
                "NetworkTopologyStrategy:dc1=1,");
}

static void secrets(void **state)
{
    (void)state;
    static const char TWO[] = "FGW_CLUSTER_SECRET=0123456789abcdef0123456789abcdef, "
                              "fedcba9876543210fedcba9876543210";
    struct loaded got;
    load_from(FGW_ROLE_SERVE, NULL, TWO, &got);
    assert_int_equal(got.err, FGW_OK);
    assert_int_equal(got.config.cluster_secrets.count, 2);
    assert_string_equal(got.config.cluster_secrets.items[1], "fedcba9876543210fedcba9876543210");
    loaded_free(&got);
    expect_errors(FGW_ROLE_SERVE, NULL, "FGW_CLUSTER_SECRET=0123456789abcdef0123456789abcde", 1,
                  "31 characters");
    expect_errors(FGW_ROLE_SERVE, NULL,
                  "FGW_ROOT_ACCESS_KEY=root|FGW_ROOT_SECRET_KEY=15-characters-xx", 0, "");
    expect_errors(FGW_ROLE_SERVE, NULL,
                  "FGW_ROOT_ACCESS_KEY=root|FGW_ROOT_SECRET_KEY=15-characters-x", 1,
                  "15 characters long; allowed: 16..256 characters");
}

int run_value_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(durations),
        cmocka_unit_test(numbers_switches_words),
        cmocka_unit_test(log_levels),
        cmocka_unit_test(listeners),
        cmocka_unit_test(hosts_names_nodes),
        cmocka_unit_test(replication),
        cmocka_unit_test(secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
