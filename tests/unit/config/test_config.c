/* test_config.c: sources and their order, unknown names, files, rules between settings, output. */
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char CLUSTER[] =
    "FGW_ROOT_ACCESS_KEY=root|FGW_ROOT_SECRET_KEY=sixteen-or-longer|FGW_CQL_HOSTS=db|"
    "FGW_CLUSTER_SECRET=0123456789abcdef0123456789abcdef|FGW_DATA=/data";

static int split_words(const char *text, char *copy, size_t size, char *words[TEST_WORDS_MAX + 1])
{
    int count = 0;
    (void)snprintf(copy, size, "%s", text == NULL ? "" : text);
    char *saved = NULL;
    for (char *word = strtok_r(copy, "|", &saved); word != NULL;
         word = strtok_r(NULL, "|", &saved)) {
        assert_in_range(count, 0, TEST_WORDS_MAX - 1);
        words[count++] = word;
    }
    words[count] = NULL;
    return count;
}

static size_t count_lines(const struct fgw_buf *text)
{
    size_t count = 0;
    for (size_t i = 0; i < text->len; i++) {
        count += text->ptr[i] == '\n';
    }
    return count;
}

void load_from(enum fgw_role role, const char *arguments, const char *environment,
               struct loaded *out)
{
    static char storage[2][4096];
    char *argv[TEST_WORDS_MAX + 1];
    char *envp[TEST_WORDS_MAX + 1];
    struct fgw_config_input input = {.role = role, .argv = argv, .envp = envp};
    input.argc = split_words(arguments, storage[0], sizeof storage[0], argv);
    (void)split_words(environment, storage[1], sizeof storage[1], envp);
    fgw_buf_init(&out->errors, 0);
    fgw_buf_init(&out->warnings, 0);
    out->err = fgw_config_load(&input, &out->config, &out->errors, &out->warnings);
    out->error_count = count_lines(&out->errors);
    out->warning_count = count_lines(&out->warnings);
    (void)fgw_buf_append_byte(&out->errors, 0);
    (void)fgw_buf_append_byte(&out->warnings, 0);
}

void loaded_free(struct loaded *loaded)
{
    if (loaded->err == FGW_OK) {
        fgw_config_deinit(&loaded->config);
    }
    fgw_buf_deinit(&loaded->errors);
    fgw_buf_deinit(&loaded->warnings);
}

void expect_errors(enum fgw_role role, const char *arguments, const char *environment, size_t count,
                   const char *part)
{
    struct loaded loaded;
    load_from(role, arguments, environment, &loaded);
    const char *errors = (const char *)loaded.errors.ptr;
    if (loaded.error_count != count || strstr(errors, part) == NULL) {
        print_error("wanted %zu errors with \"%s\", got %zu:\n%s", count, part, loaded.error_count,
                    errors);
        fail();
    }
    assert_int_equal(loaded.err, count == 0 ? FGW_OK : FGW_ERR_CONFIG);
    loaded_free(&loaded);
}

/* A temporary file with `text`; the path lives in `path`. */
static void write_file(char path[32], const char *text, size_t len)
{
    (void)snprintf(path, 32, "/tmp/fgw-config-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    assert_int_equal(close(fd), 0);
}

static void load_file(enum fgw_role role, const char *text, const char *more_arguments,
                      const char *environment, struct loaded *out)
{
    char path[32];
    char arguments[256];
    write_file(path, text, strlen(text));
    (void)snprintf(arguments, sizeof arguments, "--config|%s|%s", path, more_arguments);
    load_from(role, arguments, environment, out);
    assert_int_equal(unlink(path), 0);
}

/* -- sources -------------------------------------------------------------------------------- */

static void serve_starts_without_configuration(void **state)
{
    (void)state;
    struct loaded got;
    load_from(FGW_ROLE_SERVE, NULL, NULL, &got);
    assert_int_equal(got.err, FGW_OK);
    assert_int_equal(got.warning_count, 0);
    assert_string_equal(got.config.data_dir, "./fgw-data");
    assert_int_equal(got.config.s3_listen.count, 1);
    assert_string_equal(got.config.s3_listen.items[0].host, "127.0.0.1");
    assert_int_equal(got.config.s3_listen.items[0].port, 8078);
    assert_int_equal(got.config.meta, FGW_CONFIG_META_ROCKS);
    assert_int_equal(got.config.max_header_bytes, 32 * 1024);
    assert_int_equal(got.config.idle_timeout_ms, 75000);
    assert_true(got.config.min_free_bytes == FGW_CONFIG_AUTO);
    assert_true(got.config.threads >= 1 && got.config.memory_bytes >= 64ULL << 20);
    assert_null(got.config.root_secret_key);
    assert_int_equal(got.config.node_type, FGW_CONFIG_UNSET);
    loaded_free(&got);
}

static void roles_have_their_own_defaults(void **state)
{
    (void)state;
    struct loaded got;
    load_from(FGW_ROLE_KURI, NULL, CLUSTER, &got);
    assert_int_equal(got.err, FGW_OK);
    assert_int_equal(got.config.s3_listen.items[0].port, 8079);
    assert_int_equal(got.config.ops_listen.items[0].port, 9011);
    assert_int_equal(got.config.migrate, FGW_CONFIG_MIGRATE_SPLIT);
    assert_int_equal(got.config.cql_hosts.items[0].port, 9042);
    loaded_free(&got);
    load_from(FGW_ROLE_PROXY, NULL, CLUSTER, &got);
    assert_int_equal(got.config.migrate, FGW_CONFIG_MIGRATE_WAIT);
    assert_string_equal(got.config.s3_listen.items[0].host, "0.0.0.0");
    loaded_free(&got);
    load_from(FGW_ROLE_DB_INIT, NULL, "FGW_CQL_HOSTS=db", &got);
    assert_int_equal(got.config.migrate, FGW_CONFIG_MIGRATE_AUTO);
    loaded_free(&got);
}

static void flag_beats_environment_beats_file(void **state)
{
    (void)state;
    struct loaded got;
    const char *file = "FGW_REGION=file\nFGW_DATA=/file\nFGW_THREADS=3\n";
    load_file(FGW_ROLE_SERVE, file, "--region=flag", "FGW_REGION=env|FGW_DATA=/env", &got);
    assert_int_equal(got.err, FGW_OK);
    assert_string_equal(got.config.region, "flag");
    assert_string_equal(got.config.data_dir, "/env");
    assert_int_equal(got.config.threads, 3);
    assert_int_equal(got.config.values[FGW_SETTING_REGION].source, FGW_CONFIG_FROM_FLAG);
    assert_int_equal(got.config.values[FGW_SETTING_DATA].source, FGW_CONFIG_FROM_ENVIRONMENT);
    assert_int_equal(got.config.values[FGW_SETTING_THREADS].source, FGW_CONFIG_FROM_FILE);
    loaded_free(&got);
}

static void own_name_beats_aliases(void **state)
{
    (void)state;
    struct loaded got;
    load_from(FGW_ROLE_SERVE, NULL,
              "RIBS_YUGABYTE_CQL_HOSTS=c|RIBS_S3_CQL_HOSTS=b|FGW_YCQL_HOSTS=a", &got);
    assert_string_equal(got.config.cql_hosts.items[0].host, "a");
    loaded_free(&got);
    load_from(FGW_ROLE_SERVE, NULL, "RIBS_DATA=/old|FGW_DATA=/new", &got);
    assert_string_equal(got.config.data_dir, "/new");
    assert_non_null(strstr((const char *)got.warnings.ptr, "RIBS_DATA"));
    loaded_free(&got);
    load_from(FGW_ROLE_SERVE, NULL, "RIBS_DATA=/same|FGW_DATA=/same", &got);
    assert_int_equal(got.warning_count, 0);
    loaded_free(&got);
}

static void settings_of_the_go_gateway_start_a_node(void **state)
{
    (void)state;
    struct loaded got;
    const char *file = "export RIBS_DATA=\"/data/ribs\"\n"
                       "export RIBS_YUGABYTE_CQL_HOSTS=\"yugabyte\"\n"
                       "export RIBS_YUGABYTE_CQL_KEYSPACE='filecoingw_kuri1'\n"
                       "export RIBS_S3_CQL_KEYSPACE=filecoingw_s3\n"
                       "export RIBS_S3API_BINDADDR=\":8078\"\n"
                       "export RIBS_S3API_ROOT_ACCESS_KEY_ID=test-access-key\n"
                       "export RIBS_S3API_ROOT_SECRET_KEY=test-secret-key-16\n"
                       "export RIBS_LOGLEVEL=\"ribs:.*=debug,gw/.*=info\"\n"
                       "export RIBS_PROMETHEUS_PORT=2112\n"
                       "export RIBS_S3API_REGION=\"EU\"\n"
                       "export FGW_L1_CACHE_SIZE_MIB=2048\n"
                       "export FGW_PREFETCH_ENABLED=false\n"
                       "export FGW_INTERNAL_API_BINDADDR=:9090\n"
                       "export RIBS_MINIMUM_REPLICA_COUNT=\"1\"\n"
                       "export RIBS_DEAL_DURATION=530\n"
                       "export EXTERNAL_LOCALWEB_PATH=\"/data/ribs/cardata\"\n"
                       "FGW_NODE_ID=kuri-1\n"
                       "FGW_BACKEND_NODES=kuri-1:http://kuri-1:8078,kuri-2:http://kuri-2:8078\n";
    load_file(FGW_ROLE_KURI, file, "", "FGW_CLUSTER_SECRET=0123456789abcdef0123456789abcdef", &got);
    assert_string_equal((const char *)got.errors.ptr, "");
    assert_int_equal(got.warning_count, 1);
    assert_non_null(
        strstr((const char *)got.warnings.ptr, "RIBS_MINIMUM_REPLICA_COUNT, RIBS_DEAL_DURATION"));
    assert_non_null(
        strstr((const char *)got.warnings.ptr,
               "FGW_L1_CACHE_SIZE_MIB, FGW_PREFETCH_ENABLED, FGW_INTERNAL_API_BINDADDR"));
    assert_string_equal(got.config.region, "EU");
    assert_string_equal(got.config.data_dir, "/data/ribs");
    assert_string_equal(got.config.s3_listen.items[0].host, "0.0.0.0");
    assert_int_equal(got.config.s3_listen.items[0].port, 8078);
    assert_string_equal(got.config.ops_listen.items[0].host, "127.0.0.1");
    assert_int_equal(got.config.ops_listen.items[0].port, 2112);
    assert_int_equal(got.config.log_level, FGW_LOG_DEBUG);
    assert_string_equal(got.config.cql_node_keyspace, "filecoingw_kuri1");
    assert_int_equal(got.config.backend_nodes.count, 2);
    assert_string_equal(got.config.backend_nodes.items[1].url, "http://kuri-2:8078");
    loaded_free(&got);
}

/* -- mistakes ------------------------------------------------------------------------------- */

static void all_errors_come_at_once(void **state)
{
    (void)state;
    struct loaded got;
    load_file(FGW_ROLE_KURI, "FGW_LOGLEVEL=info\nFGW_REGION=a_b\nnonsense\n", "--thread=2",
              "FGW_LOG_LEVEL=loud|FGW_MEMORY=3", &got);
    const char *errors = (const char *)got.errors.ptr;
    static const char *const PARTS[] = {
        "--thread is no flag; did you mean --threads?",
        "FGW_LOGLEVEL (",
        ":1) is no setting; did you mean FGW_LOG_LEVEL?",
        "FGW_REGION=a_b (",
        ":2): not of the form allowed; allowed: 1 to 32 of a-z 0-9 -",
        ":3: not KEY=VALUE",
        "FGW_LOG_LEVEL=loud (environment): unknown level; allowed: error (err)",
        "FGW_MEMORY=3 (environment): not a size",
        "FGW_DATA (not set) is required for fgw kuri",
        "FGW_CQL_HOSTS (not set)",
        "FGW_ROOT_ACCESS_KEY (not set)",
        "FGW_ROOT_SECRET_KEY (not set)",
        "FGW_CLUSTER_SECRET (not set)",
    };
    assert_int_equal(got.err, FGW_ERR_CONFIG);
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        if (strstr(errors, PARTS[i]) == NULL) {
            print_error("no \"%s\" in:\n%s", PARTS[i], errors);
            fail();
        }
    }
    assert_int_equal(got.error_count, 11);
    loaded_free(&got);
}

static void unknown_flags(void **state)
{
    (void)state;
    expect_errors(FGW_ROLE_SERVE, "--regoin|x", NULL, 1, "did you mean --region?");
    expect_errors(FGW_ROLE_SERVE, "--xyzzyxyzzy", NULL, 1, "see fgw config");
    expect_errors(FGW_ROLE_SERVE, "-r", NULL, 1, "two dashes");
    expect_errors(FGW_ROLE_SERVE, "stray", NULL, 1, "unexpected argument \"stray\"");
    expect_errors(FGW_ROLE_SERVE, "--region", NULL, 1, "--region needs a value");
    expect_errors(FGW_ROLE_SERVE, "--region|--threads|2", NULL, 1, "--region needs a value");
    expect_errors(FGW_ROLE_SERVE, "--replicas=2", NULL, 1, "does not apply to fgw serve");
    char longest[600];
    memset(longest, 'a', sizeof longest);
    memcpy(longest, "--", 2);
    longest[sizeof longest - 1] = '\0';
    expect_errors(FGW_ROLE_SERVE, longest, NULL, 1, "is no flag");
}

static void unknown_names_in_the_environment_are_warnings(void **state)
{
    (void)state;
    struct loaded got;
    load_from(FGW_ROLE_SERVE, NULL,
              "FGW_REGOIN=x|RIBS_A=1|RIBS_B=2|FGW_TEST_SEED=1|PATH=/bin|FGW_SERVICE_HOST=10.0.0.1|"
              "FGW_SERVICE_PORT=80|FGW_SERVICE_PORT_S3=80|FGW_PORT=tcp://10.0.0.1:80|"
              "FGW_PORT_80_TCP=tcp://10.0.0.1:80|FGW_PORT_80_TCP_ADDR=10.0.0.1|"
              "FGW_CQL_PORT=tcp://10.0.0.2:9042",
              &got);
    assert_int_equal(got.err, FGW_OK);
    assert_int_equal(got.warning_count, 2);
    assert_non_null(strstr((const char *)got.warnings.ptr, "did you mean FGW_REGION?"));
    assert_non_null(strstr((const char *)got.warnings.ptr, "RIBS_A, RIBS_B"));
    assert_int_equal(got.config.cql_port, 9042);
    loaded_free(&got);
}

static void secrets_never_show(void **state)
{
    (void)state;
    struct loaded got;
    load_from(FGW_ROLE_SERVE, NULL,
              "FGW_ROOT_SECRET_KEY=hush|FGW_CLUSTER_SECRET=hush,hush|FGW_ROOT_ACCESS_KEY=root",
              &got);
    assert_int_equal(got.error_count, 2);
    assert_null(strstr((const char *)got.errors.ptr, "hush"));
    loaded_free(&got);

    struct fgw_buf text;
    fgw_buf_init(&text, 0);
    load_from(FGW_ROLE_SERVE, NULL,
              "FGW_ROOT_SECRET_KEY=hush-hush-hush-hush|FGW_ROOT_ACCESS_KEY=root", &got);
    assert_int_equal(got.err, FGW_OK);
    fgw_config_print_table(&got.config, &text);
    fgw_config_print_json(&got.config, &text);
    (void)fgw_buf_append_byte(&text, 0);
    assert_null(strstr((const char *)text.ptr, "hush"));
    assert_non_null(strstr((const char *)text.ptr, "********"));
    fgw_buf_deinit(&text);
    loaded_free(&got);
}

/* -- files ---------------------------------------------------------------------------------- */

static void file_syntax(void **state)
{
    (void)state;
    struct loaded got;
    load_file(FGW_ROLE_SERVE,
              "\n  # a comment\r\nexport\tFGW_REGION = eu-1 # why\r\n"
              "FGW_CQL_USER=\"a # $HOME 'b'\"\nFGW_CQL_PASSWORD='p\"#w'  # c\n"
              "FGW_CQL_LOCAL_DC=a#b\nFGW_ZONE=\nOTHER=$(x)",
              "", NULL, &got);
    assert_string_equal((const char *)got.errors.ptr, "");
    assert_string_equal(got.config.region, "eu-1");
    assert_string_equal(got.config.cql_user, "a # $HOME 'b'");
    assert_string_equal(got.config.cql_password, "p\"#w");
    assert_string_equal(got.config.cql_local_dc, "a#b");
    loaded_free(&got);
}

static void file_mistakes_name_their_line(void **state)
{
    (void)state;
    struct loaded got;
    load_file(FGW_ROLE_SERVE, "A B=1\n=x\n1A=2\nFGW_REGION='x\nFGW_REGION=\"x\" y\nFGW_REGION\n",
              "", NULL, &got);
    assert_int_equal(got.error_count, 6);
    assert_non_null(strstr((const char *)got.errors.ptr, ":4: a quote that does not end"));
    assert_non_null(strstr((const char *)got.errors.ptr, ":5: text behind the closing quote"));
    loaded_free(&got);

    char path[32];
    char arguments[64];
    write_file(path, "FGW_REGION=a\0b\nFGW_REGION=ok\n", 29);
    (void)snprintf(arguments, sizeof arguments, "--config=%s", path);
    expect_errors(FGW_ROLE_SERVE, arguments, NULL, 1, ":1: a NUL byte");
    assert_int_equal(unlink(path), 0);
    expect_errors(FGW_ROLE_SERVE, arguments, NULL, 1, "there is no such file");
    expect_errors(FGW_ROLE_SERVE, "--config=/", NULL, 1, "cannot be read");
    expect_errors(FGW_ROLE_SERVE, "--config=/dev/zero", NULL, 1, "too large");
}

static void secret_from_a_file(void **state)
{
    (void)state;
    struct loaded got;
    char path[32];
    char environment[256];
    write_file(path, "a secret of the file\r\n", 22);
    (void)snprintf(environment, sizeof environment,
                   "FGW_ROOT_SECRET_KEY_FILE=%s|FGW_ROOT_ACCESS_KEY=root", path);
    load_from(FGW_ROLE_SERVE, NULL, environment, &got);
    assert_string_equal((const char *)got.errors.ptr, "");
    assert_string_equal(got.config.root_secret_key, "a secret of the file");
    loaded_free(&got);
    (void)snprintf(environment, sizeof environment,
                   "FGW_ROOT_SECRET_KEY_FILE=%s|FGW_ROOT_SECRET_KEY=another-one-of-16|"
                   "FGW_ROOT_ACCESS_KEY=root",
                   path);
    expect_errors(FGW_ROLE_SERVE, NULL, environment, 1, "are both set");
    assert_int_equal(unlink(path), 0);
    expect_errors(FGW_ROLE_SERVE, "--root-secret-key-file=/nowhere|--root-access-key=root", NULL, 2,
                  "there is no such file");
    expect_errors(FGW_ROLE_SERVE, "--region-file=/x", NULL, 1, "is no flag");
}

static void flags_with_secrets_warn(void **state)
{
    (void)state;
    struct loaded got;
    load_from(FGW_ROLE_SERVE, "--root-secret-key|sixteen-or-longer|--root-access-key|root", NULL,
              &got);
    assert_int_equal(got.err, FGW_OK);
    assert_non_null(strstr((const char *)got.warnings.ptr, "process list"));
    loaded_free(&got);
}

/* -- rules between settings ----------------------------------------------------------------- */

static void rules_between_settings(void **state)
{
    (void)state;
    expect_errors(FGW_ROLE_SERVE, "--tls-cert=/a", NULL, 1, "without FGW_TLS_KEY");
    expect_errors(FGW_ROLE_SERVE, "--tls-key=/a", NULL, 1, "without FGW_TLS_CERT");
    expect_errors(FGW_ROLE_SERVE, "--root-access-key=root", NULL, 1, "without FGW_ROOT_SECRET_KEY");
    expect_errors(FGW_ROLE_SERVE, "--cql-user=u", NULL, 1, "without FGW_CQL_PASSWORD");
    expect_errors(FGW_ROLE_SERVE, "--meta=cql", NULL, 2, "FGW_CLUSTER_SECRET (not set)");
    expect_errors(FGW_ROLE_SERVE, "--s3-listen=:9010", NULL, 1, "port 9010 is also in");
    expect_errors(FGW_ROLE_SERVE, "--s3-listen=127.0.0.2:9010", NULL, 0, "");
    expect_errors(FGW_ROLE_SERVE, "--s3-listen=:9010|--ops-listen=", NULL, 0, "");
    expect_errors(FGW_ROLE_PROXY, "--meta=rocks", CLUSTER, 1, "allowed: cql");
    expect_errors(FGW_ROLE_PROXY, "--min-replicas=3", CLUSTER, 1, "more than FGW_REPLICAS=2");
    expect_errors(FGW_ROLE_KURI, "--cql-node-keyspace=filecoingw_s3", CLUSTER, 1,
                  "is the shared keyspace");
    expect_errors(FGW_ROLE_DB_INIT, NULL, NULL, 1, "FGW_CQL_HOSTS (not set)");
}

static void node_identity(void **state)
{
    (void)state;
    struct loaded got;
    char keyspace[FGW_CONFIG_KEYSPACE_SIZE];
    fgw_config_node_keyspace("abcdefghijklmnopqrstuvwxyz012345", keyspace);
    assert_string_equal(keyspace, "filecoingw_abcdefghijklmnopqrstuvwxyz012345");
    fgw_config_node_keyspace("k-u-ri-1", keyspace);
    assert_string_equal(keyspace, "filecoingw_kuri1");
    assert_true(fgw_config_node_id_valid("kuri-1"));
    assert_false(fgw_config_node_id_valid("---"));
    assert_false(fgw_config_node_id_valid(""));
    assert_false(fgw_config_node_id_valid("Kuri"));
    load_from(FGW_ROLE_KURI, "--node-id=kuri-1|--s3-listen=[::1]:8079", CLUSTER, &got);
    assert_string_equal(got.config.cql_node_keyspace, "filecoingw_kuri1");
    assert_string_equal(got.config.node_url, "http://[::1]:8079");
    loaded_free(&got);
    load_from(FGW_ROLE_KURI, "--cql-node-keyspace=none", CLUSTER, &got);
    assert_null(got.config.cql_node_keyspace);
    loaded_free(&got);
    load_from(FGW_ROLE_KURI, NULL, CLUSTER, &got);
    assert_true(fgw_config_node_id_valid(got.config.node_id));
    assert_non_null(got.config.host);
    loaded_free(&got);
}

static void options_and_positionals_of_a_verb(void **state)
{
    (void)state;
    struct fgw_config config;
    struct fgw_buf errors;
    struct fgw_buf warnings;
    const char *positionals[2] = {NULL, NULL};
    char *argv[] = {"add", "--json", "--id", "7", "--", "--name"};
    char *envp[] = {NULL};
    struct fgw_config_option options[] = {
        {"json", false, NULL, ""}, {"id", true, NULL, ""}, {"admin", true, NULL, ""}};
    struct fgw_config_input input = {FGW_ROLE_TOOL, 6, argv, envp, options, 3, positionals, 2, 0};
    fgw_buf_init(&errors, 0);
    fgw_buf_init(&warnings, 0);
    assert_int_equal(fgw_config_load(&input, &config, &errors, &warnings), FGW_OK);
    assert_string_equal(options[0].value, "");
    assert_string_equal(options[1].value, "7");
    assert_null(options[2].value);
    assert_int_equal(input.positional_count, 2);
    assert_string_equal(positionals[0], "add");
    assert_string_equal(positionals[1], "--name");
    fgw_config_deinit(&config);
    fgw_buf_deinit(&errors);
    fgw_buf_deinit(&warnings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serve_starts_without_configuration),
        cmocka_unit_test(roles_have_their_own_defaults),
        cmocka_unit_test(flag_beats_environment_beats_file),
        cmocka_unit_test(own_name_beats_aliases),
        cmocka_unit_test(settings_of_the_go_gateway_start_a_node),
        cmocka_unit_test(all_errors_come_at_once),
        cmocka_unit_test(unknown_flags),
        cmocka_unit_test(unknown_names_in_the_environment_are_warnings),
        cmocka_unit_test(secrets_never_show),
        cmocka_unit_test(file_syntax),
        cmocka_unit_test(file_mistakes_name_their_line),
        cmocka_unit_test(secret_from_a_file),
        cmocka_unit_test(flags_with_secrets_warn),
        cmocka_unit_test(rules_between_settings),
        cmocka_unit_test(node_identity),
        cmocka_unit_test(options_and_positionals_of_a_verb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) + run_value_tests();
}
