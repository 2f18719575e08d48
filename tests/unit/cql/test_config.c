/* test_config.c: hosts and consistency levels as people write them. */
#include "cmocka_all.h"

#include "cql/config_internal.h"

static struct fgw_cql_config *make(const char *hosts)
{
    struct fgw_cql_config *config = NULL;
    struct fgw_error error = {0};
    struct fgw_cql_settings settings = {.hosts = hosts};
    enum fgw_err err = fgw_cql_config_new(&settings, &config, &error);
    assert_true(err == FGW_OK || err == FGW_ERR_CONFIG);
    assert_true(err == FGW_OK || strstr(error.message, "FGW_CQL_HOSTS") != NULL);
    return config;
}

static void hosts(void **state)
{
    (void)state;
    struct fgw_cql_config *config =
        make(" db1 ,10.0.0.2:9043,::1, [fe80::2], [fe80::3]:1 ,,db2:65535");
    assert_non_null(config);
    static const struct {
        const char *host;
        unsigned port;
    } WANT[] = {{"db1", 9042},     {"10.0.0.2", 9043}, {"::1", 9042},
                {"fe80::2", 9042}, {"fe80::3", 1},     {"db2", 65535}};
    assert_int_equal(config->contact_count, sizeof WANT / sizeof WANT[0]);
    for (size_t i = 0; i < config->contact_count; i++) {
        assert_string_equal(config->contacts[i].host, WANT[i].host);
        assert_int_equal(config->contacts[i].port, WANT[i].port);
    }
    assert_int_equal(config->consistency, FGW_CQL_QUORUM);
    assert_int_equal(config->timeout_ms, 10000);
    assert_null(config->user);
    fgw_cql_config_free(config);
}

static void refused_hosts(void **state)
{
    (void)state;
    static const char *const BAD[] = {"",     " , ",       "db:0", "db:65536", "db:x",  ":9042",
                                      "[::1", "[::1]9042", "[]:1", "db:",      "[::1]:"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_null(make(BAD[i]));
    }
    assert_null(make(NULL));
}

static void consistency(void **state)
{
    (void)state;
    enum fgw_cql_consistency level = FGW_CQL_ANY;
    struct fgw_error error = {0};
    assert_int_equal(fgw_cql_consistency_parse(FGW_LIT("local_quorum"), &level, &error), FGW_OK);
    assert_int_equal(level, FGW_CQL_LOCAL_QUORUM);
    static const char *const REFUSED[] = {"ONE", "ALL", "SERIAL", "", "QUORUMS", "ANY"};
    for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
        assert_int_equal(fgw_cql_consistency_parse(fgw_bytes_str(REFUSED[i]), &level, &error),
                         FGW_ERR_CONFIG);
    }
    assert_int_equal(level, FGW_CQL_LOCAL_QUORUM);
}

static void tls_file_is_checked(void **state)
{
    (void)state;
    struct fgw_cql_config *config = NULL;
    struct fgw_error error = {0};
    struct fgw_cql_settings settings = {.hosts = "db", .tls_ca = "/nowhere/ca.pem"};
    assert_int_equal(fgw_cql_config_new(&settings, &config, &error), FGW_ERR_CONFIG);
    assert_non_null(strstr(error.message, "/nowhere/ca.pem"));
    assert_null(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts),
        cmocka_unit_test(refused_hosts),
        cmocka_unit_test(consistency),
        cmocka_unit_test(tls_file_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
