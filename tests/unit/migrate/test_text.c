/* test_text.c: tokenizer (row 32 of spec/migrations.md E3), statements, catalog comparison, lint. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "migrate/set.h"

static struct fgw_arena arena;

static int setup(void **state)
{
    (void)state;
    fgw_arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fgw_arena_deinit(&arena);
    return 0;
}

static size_t split(const char *text, const char **out_normal)
{
    struct fgw_migrate_texts texts;
    assert_int_equal(fgw_migrate_split(&arena, fgw_bytes_str(text), NULL, &texts), FGW_OK);
    for (size_t i = 0; i < texts.count && out_normal != NULL; i++) {
        out_normal[i] = fgw_migrate_normalise(&arena, texts.items[i]);
    }
    return texts.count;
}

static void row32_splitting(void **state)
{
    (void)state;
    const char *n[8];
    static const struct {
        const char *text;
        size_t count;
        const char *first;
    } cases[] = {
        {"", 0, NULL},
        {";;;", 0, NULL},
        {"  -- only a comment", 0, NULL},
        {"/* ; */", 0, NULL},
        {"SELECT 1", 1, "SELECT 1"},
        {"SELECT 1;", 1, "SELECT 1"},
        {"SELECT 1;;", 1, "SELECT 1"},
        {"a;b", 2, "a"},
        {"a ';' b", 1, "a ';' b"},
        {"a 'it''s; so' ; b", 2, "a 'it''s; so'"},
        {"a \"x;\"\"y\" ; b", 2, "a \"x;\"\"y\""},
        {"a $$ ; ' \" -- $$ ; b", 2, "a $$ ; ' \" -- $$"},
        {"-- the group's multihash\na;b", 2, "a"},
        {"// don't; split\na;b", 2, "a"},
        {"a /* it's ; */ b ; c", 2, "a b"},
        {"a /* /* */ b; c", 2, "a b"},
        {"a\r\n;\r\nb\r\n", 2, "a"},
        {"\xEF\xBB\xBF"
         "a;b",
         2, "a"},
        {"a -- x\r b; c", 2, "a b"},
        {"a--x", 1, "a"},
        {"v = v - 1", 1, "v = v - 1"},
        {"v = -1", 1, "v = -1"},
        {"(-1.5e-3,0xAf,5b6962dd-3f90-4c93-8f61-eabfa4a803e2)", 1,
         "( -1.5e-3 , 0xAf , 5b6962dd-3f90-4c93-8f61-eabfa4a803e2 )"},
        {"'\xC3\xA9\xE2\x82\xAC'", 1, "'\xC3\xA9\xE2\x82\xAC'"},
    };
    for (size_t i = 0; i < FGW_COUNT_OF(cases); i++) {
        size_t count = split(cases[i].text, n);
        if (count != cases[i].count || (count > 0 && strcmp(n[0], cases[i].first) != 0)) {
            fail_msg("case %zu: %zu statements, first \"%s\"", i, count, count > 0 ? n[0] : "");
        }
    }
}

static void row32_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {"'open", "\"open", "$$open", "/* open",  "a 'x''",
                                        "a # b", "a ~",    "a \x01", "\xC3\xA9", "a\n\nb 'open"};
    for (size_t i = 0; i < FGW_COUNT_OF(cases); i++) {
        struct fgw_migrate_texts texts;
        struct fgw_error error;
        fgw_error_init(&error);
        if (fgw_migrate_split(&arena, fgw_bytes_str(cases[i]), &error, &texts) != FGW_ERR_PARSE ||
            strstr(fgw_error_message(&error), "line ") == NULL) {
            fail_msg("case %zu", i);
        }
    }
    struct fgw_migrate_texts texts;
    struct fgw_error error;
    fgw_error_init(&error);
    assert_int_equal(fgw_migrate_split(&arena, fgw_bytes("a\0b", 3), NULL, &texts), FGW_ERR_PARSE);
    assert_int_equal(fgw_migrate_split(&arena, fgw_bytes("a 'x\0b'", 7), NULL, &texts),
                     FGW_ERR_PARSE);
    assert_int_equal(fgw_migrate_split(&arena, fgw_bytes_str(cases[9]), &error, &texts),
                     FGW_ERR_PARSE);
    assert_non_null(strstr(fgw_error_message(&error), "line 3"));
}

static void row32_large_file(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    char *text = fgw_xmalloc(SIZE + 1);
    size_t len = 0;
    while (len + 40 < SIZE) {
        len += (size_t)snprintf(text + len, 40, "a ';' /* ; */ b; -- ;\n");
    }
    struct fgw_migrate_texts texts;
    assert_int_equal(fgw_migrate_split(&arena, fgw_bytes(text, len), NULL, &texts), FGW_OK);
    assert_int_equal(texts.count, len / 22);
    fgw_xfree(text);
    char *big = fgw_xcalloc(1, 9 << 20);
    assert_int_equal(fgw_migrate_split(&arena, fgw_bytes(big, 9 << 20), NULL, &texts),
                     FGW_ERR_TOO_LARGE);
    fgw_xfree(big);
}

/* Every prefix of a file full of traps, exactly as long as it is: no read behind the end. */
static void row32_every_prefix(void **state)
{
    (void)state;
    static const char text[] =
        "\xEF\xBB\xBF-- it's\r\nCREATE TABLE t (a text, \"b\"\"c\" int,"
        " PRIMARY KEY ((a), b)) WITH CLUSTERING ORDER BY (b DESC);"
        "/* x */ INSERT INTO t (a) VALUES ('y''z', $$;$$, -1e-3, 0xab); // e";
    for (size_t len = 0; len < sizeof text; len++) {
        uint8_t *copy = fgw_xmalloc(len == 0 ? 1 : len);
        memcpy(copy, text, len);
        struct fgw_migrate_texts texts;
        if (fgw_migrate_split(&arena, fgw_bytes(copy, len), NULL, &texts) == FGW_OK) {
            for (size_t i = 0; i < texts.count; i++) {
                struct fgw_migrate_statement statement;
                (void)!fgw_migrate_parse(&arena, texts.items[i], NULL, &statement);
            }
        }
        fgw_xfree(copy);
    }
}

static void hashes(void **state)
{
    (void)state;
    char sha[FGW_MIGRATE_SHA_MAX];
    fgw_migrate_sha(fgw_bytes_str("abc"), sha); /* FIPS 180-4 */
    assert_string_equal(sha, "s1:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    struct fgw_migrate_statement a;
    struct fgw_migrate_statement b;
    assert_int_equal(
        fgw_migrate_parse_text(&arena, "CREATE TABLE t (a text PRIMARY KEY)", NULL, &a), FGW_OK);
    assert_int_equal(
        fgw_migrate_parse_text(&arena, "CREATE  TABLE\nt(a text /* k */PRIMARY KEY);--", NULL, &b),
        FGW_OK);
    assert_string_equal(a.sha, b.sha);
}

static struct fgw_migrate_statement parse(const char *text)
{
    struct fgw_migrate_statement statement;
    struct fgw_error error;
    fgw_error_init(&error);
    if (fgw_migrate_parse_text(&arena, text, &error, &statement) != FGW_OK) {
        fail_msg("%s: %s", text, fgw_error_message(&error));
    }
    return statement;
}

static void statements(void **state)
{
    (void)state;
    struct fgw_migrate_statement s = parse(
        "create table KS.Objects (Bucket uuid, shard int, \"K\" blob, v varchar, n set < bigint >,"
        " s text static, primary key ((bucket, shard), \"K\", v)) with clustering order by"
        " (\"K\" asc, v desc) and default_time_to_live = 60");
    assert_int_equal(s.class, FGW_MIGRATE_CREATE_TABLE);
    assert_string_equal(s.keyspace, "ks");
    assert_string_equal(s.table, "objects");
    assert_true(s.quoted);
    assert_string_equal(fgw_migrate_key_text(&arena, s.create), "((bucket, shard), K, v DESC)");
    assert_string_equal(fgw_migrate_table_find(s.create, "v")->type, "text");
    assert_string_equal(fgw_migrate_table_find(s.create, "n")->type, "set<bigint>");
    assert_int_equal(fgw_migrate_table_find(s.create, "s")->kind, FGW_MIGRATE_STATIC);
    assert_int_equal(s.create->ttl_s, 60);
    s = parse("ALTER TABLE t ADD c blob");
    assert_int_equal(s.class, FGW_MIGRATE_ADD_COLUMN);
    assert_string_equal(fgw_migrate_send_text(&arena, &s, "ks"), "ALTER TABLE ks.t ADD c blob");
    s = parse("DROP TABLE IF EXISTS t");
    assert_true(s.guarded && fgw_migrate_destructive(s.class));
    s = parse("ALTER TABLE t WITH default_time_to_live = 5");
    assert_int_equal(s.ttl_s, 5);
    s = parse("INSERT INTO t (a, b) VALUES ('x', -1) IF NOT EXISTS");
    assert_int_equal(s.column_count, 2);
    /* what we write is what we read */
    s = parse("CREATE TABLE k.t (a text, b int, c bigint, PRIMARY KEY ((a), b)) WITH CLUSTERING"
              " ORDER BY (b DESC) AND default_time_to_live = 9");
    struct fgw_migrate_statement again = parse(fgw_migrate_table_cql(&arena, "k", s.create));
    struct fgw_migrate_diff diff;
    fgw_migrate_table_compare(&arena, s.create, again.create, &diff);
    assert_true(diff.equal);
}

static void refused_statements(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "SELECT * FROM t",
        "CREATE INDEX i ON t (a)",
        "CREATE KEYSPACE k",
        "TRUNCATE t",
        "CREATE TABLE t (a text)",
        "CREATE TABLE t (a text, PRIMARY KEY (b))",
        "CREATE TABLE t (a text, a int, PRIMARY KEY (a))",
        "CREATE TABLE t (a text PRIMARY KEY, b int PRIMARY KEY)",
        "CREATE TABLE t (a text, PRIMARY KEY (a, a))",
        "CREATE TABLE t (a text PRIMARY KEY) WITH transactions = {'enabled': true}",
        "CREATE TABLE t (a text PRIMARY KEY) WITH comment = 'x'",
        "CREATE TABLE t (a text PRIMARY KEY) WITH CLUSTERING ORDER BY (a DESC)",
        "CREATE TABLE t (a text PRIMARY KEY) garbage",
        "CREATE TABLE",
        "CREATE TABLE t",
        "CREATE TABLE t (a set<text PRIMARY KEY)",
        "ALTER TABLE t ADD a int, b int",
        "ALTER TABLE t ADD a",
        "ALTER TABLE t ALTER a TYPE int",
        "ALTER TABLE t RENAME a TO b",
        "ALTER KEYSPACE k",
        "DROP KEYSPACE k",
        "DROP INDEX i",
        "INSERT INTO t (a) VALUES (now())",
        "INSERT INTO t (a, b) VALUES (1)",
        "INSERT INTO t (a) VALUES (?)",
        "UPDATE t SET v = v + 1",
        "DELETE FROM t WHERE a = 1",
        "ALTER TABLE t WITH default_time_to_live = -1",
        "CREATE TABLE t (a text PRIMARY KEY) WITH default_time_to_live = 99999999999",
    };
    for (size_t i = 0; i < FGW_COUNT_OF(cases); i++) {
        struct fgw_migrate_statement statement;
        if (fgw_migrate_parse_text(&arena, cases[i], NULL, &statement) == FGW_OK) {
            fail_msg("accepted: %s", cases[i]);
        }
    }
}

static void differences(void **state)
{
    (void)state;
    struct fgw_migrate_statement want =
        parse("CREATE TABLE t (a text, b int, c bigint, d text, PRIMARY KEY ((a), b))");
    static const struct {
        const char *have;
        const char *text;
    } cases[] = {
        {"CREATE TABLE t (d varchar, c bigint, b int, a text, PRIMARY KEY (a, b))", ""},
        {"CREATE TABLE t (a text, b int, c bigint, d text, PRIMARY KEY ((a, b)))",
         "key: want ((a), b)  have ((a, b))"},
        {"CREATE TABLE t (a text, b int, c bigint, d text, PRIMARY KEY (a, b)) WITH CLUSTERING"
         " ORDER BY (b DESC)",
         "key: want ((a), b)  have ((a), b DESC)"},
        {"CREATE TABLE t (a text, b int, c int, d text, PRIMARY KEY (a, b))",
         "type: c want bigint  have int"},
        {"CREATE TABLE t (a text, b int, c bigint, PRIMARY KEY (a, b))", "missing: d text"},
        {"CREATE TABLE t (a text, b int, c bigint, d text, e int, PRIMARY KEY (a, b))",
         "extra: e int"},
        {"CREATE TABLE t (a text, b int, c bigint, d text, PRIMARY KEY (a, b)) WITH"
         " default_time_to_live = 7",
         "default_time_to_live: want 0  have 7"},
        {"CREATE TABLE t (a text, b text, PRIMARY KEY (a, b))",
         "type: b want int  have text; missing: c bigint, d text"},
    };
    for (size_t i = 0; i < FGW_COUNT_OF(cases); i++) {
        struct fgw_migrate_statement have = parse(cases[i].have);
        struct fgw_migrate_diff diff;
        fgw_migrate_table_compare(&arena, want.create, have.create, &diff);
        assert_string_equal(diff.text, cases[i].text);
        assert_int_equal(diff.equal, *cases[i].text == '\0');
    }
    struct fgw_migrate_diff diff;
    fgw_migrate_table_compare(&arena, want.create, NULL, &diff);
    assert_string_equal(diff.text, "table is missing");
}

static const char *lint(int64_t version, const char *text)
{
    static const char first[] = "CREATE TABLE seen (id text PRIMARY KEY, v text)";
    struct fgw_migrate_source sources[] = {
        {.version = 20250101000000, .name = "first", .text = first, .text_len = sizeof first - 1},
        {.version = version, .name = "second", .text = text, .text_len = strlen(text)}};
    static struct fgw_error error;
    fgw_error_init(&error);
    struct fgw_migrate_set set;
    return fgw_migrate_set_build(&arena, "shared", sources, 2, &error, &set) == FGW_OK
               ? ""
               : fgw_error_message(&error);
}

static void lint_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *reason;
    } cases[] = {
        {"CREATE TABLE t (id text PRIMARY KEY)", NULL},
        {"CREATE TABLE IF NOT EXISTS t (id text PRIMARY KEY)", "hides a wrong shape"},
        {"CREATE TABLE k.t (id text PRIMARY KEY)", "no keyspace"},
        {"CREATE TABLE \"t\" (id text PRIMARY KEY)", "quoted"},
        {"CREATE TABLE t (\"order\" text PRIMARY KEY)", "quoted"},
        {"CREATE TABLE t (token text PRIMARY KEY)", "reserved"},
        {"CREATE TABLE select (id text PRIMARY KEY)", "reserved"},
        {"CREATE TABLE t (id text PRIMARY KEY, c counter)", "type counter"},
        {"CREATE TABLE t (id text, k int, s text static, PRIMARY KEY (id, k))", "static"},
        {"CREATE TABLE seen (id text PRIMARY KEY)", "exists already"},
        {"ALTER TABLE seen ADD v text", "column already"},
        {"ALTER TABLE nowhere ADD v text", "does not exist"},
        {"DROP TABLE seen", "only in a contract"},
        {"ALTER TABLE seen DROP v", "only in a contract"},
        {"-- phase: contract\nDROP TABLE seen", "min-compat"},
        {"-- min-compat: 20250101000000\nCREATE TABLE t (id text PRIMARY KEY)", "min-compat"},
        {"-- phase: contract\n-- min-compat: 29990101000000\nDROP TABLE seen", "above"},
        {"-- phase: contract\n-- min-compat: 20250101000000\nDROP TABLE seen", NULL},
        {"-- phase: contract\n-- min-compat: 20250101000000\nDROP TABLE seen;"
         "CREATE TABLE seen (id text PRIMARY KEY)",
         "never used again"},
        {"-- phase: contract\n-- min-compat: 20250101000000\nALTER TABLE seen DROP v;"
         "ALTER TABLE seen ADD v int",
         "never used again"},
        {"-- phase: contract\n-- min-compat: 20250101000000\nALTER TABLE seen DROP id",
         "outside its key"},
        {"-- phase: sideways\nCREATE TABLE t (id text PRIMARY KEY)", "phase"},
        {"CREATE TABLE fgw_schema_x (id text PRIMARY KEY)", "not for migrations"},
        {"INSERT INTO seen (v) VALUES ('x')", "whole key"},
        {"INSERT INTO seen (id, w) VALUES ('x', 'y')", "no such column"},
        {"INSERT INTO seen (id, v) VALUES ('x', 'y') IF NOT EXISTS", NULL},
        {"-- nothing here", "no statement"},
        {"UPDATE seen SET v = 'x' WHERE id = 'y'", "known statement class"},
    };
    for (size_t i = 0; i < FGW_COUNT_OF(cases); i++) {
        const char *said = lint(20260101000000, cases[i].text);
        bool right = cases[i].reason == NULL ? !*said : strstr(said, cases[i].reason) != NULL;
        if (!right) {
            fail_msg("%s: \"%s\"", cases[i].text, said);
        }
    }
    assert_non_null(
        strstr(lint(20240101000000, "CREATE TABLE t (id text PRIMARY KEY)"), "out of order"));
    assert_non_null(strstr(lint(4711, "CREATE TABLE t (id text PRIMARY KEY)"), "out of order"));
    assert_non_null(strstr(lint(20260101000000, "CREATE TABLE t (\n\nid text)"),
                           "shared/20260101000000_second.cql"));
}

static void embedded_sets(void **state)
{
    (void)state;
    static const char *const names[] = {"shared", "node"};
    for (size_t i = 0; i < 2; i++) {
        size_t count = 0;
        const struct fgw_migrate_source *sources = fgw_migrate_embedded(names[i], &count);
        assert_non_null(sources);
        struct fgw_migrate_set set;
        assert_int_equal(fgw_migrate_set_build(&arena, names[i], sources, count, NULL, &set),
                         FGW_OK);
        assert_int_equal(set.file_count, count);
        assert_true(set.knows >= FGW_MIGRATE_OWN_VERSIONS);
    }
    size_t count;
    assert_null(fgw_migrate_embedded("other", &count));
    /* a text that is not the embedded one is noticed */
    const struct fgw_migrate_source *sources = fgw_migrate_embedded("shared", &count);
    struct fgw_migrate_source changed = sources[0];
    changed.text_len--;
    struct fgw_migrate_set set;
    assert_int_not_equal(fgw_migrate_set_build(&arena, "shared", &changed, 1, NULL, &set), FGW_OK);
}

/* Every table of design/metadata.md section 2, and the seven legacy columns of the uploads. */
static void shared_schema(void **state)
{
    (void)state;
    static const struct {
        const char *table;
        const char *key;
    } tables[] = {
        {"buckets", "((name))"},
        {"buckets_by_owner", "((owner), name, bucket_id)"},
        {"objects", "((bucket_id, shard), key)"},
        {"object_versions", "((bucket_id, shard), key, version_id DESC)"},
        {"multipartuploads", "((upload_id))"},
        {"uploads_by_bucket", "((bucket_id, shard), key, upload_id)"},
        {"parts", "((upload_id), part_number, attempt DESC)"},
        {"releases", "((store_id, hour), owner_id)"},
        {"users", "((id))"},
        {"access_keys", "((id))"},
        {"keys_by_user", "((user_id), access_key)"},
        {"policies", "((id))"},
        {"nodes", "((store_id))"},
        {"heartbeats", "((store_id), epoch)"},
        {"map", "((id))"},
        {"sets", "((set_id))"},
        {"outbox", "((bucket_id, hour), op_id)"},
        {"usage", "((bucket_id), writer)"},
    };
    size_t count;
    const struct fgw_migrate_source *sources = fgw_migrate_embedded("shared", &count);
    struct fgw_migrate_set set;
    assert_int_equal(fgw_migrate_set_build(&arena, "shared", sources, count, NULL, &set), FGW_OK);
    struct fgw_migrate_catalog catalog;
    fgw_migrate_expected(&arena, &set, set.knows, NULL, &catalog);
    assert_int_equal(catalog.table_count, FGW_COUNT_OF(tables));
    for (size_t i = 0; i < FGW_COUNT_OF(tables); i++) {
        const struct fgw_migrate_table *table = fgw_migrate_catalog_find(&catalog, tables[i].table);
        assert_non_null(table);
        assert_string_equal(fgw_migrate_key_text(&arena, table), tables[i].key);
    }
    size_t legacy_count;
    const struct fgw_migrate_legacy *legacy = fgw_migrate_legacy_tables(&legacy_count);
    for (size_t i = 0; i < legacy_count; i++) {
        struct fgw_migrate_statement statement = parse(legacy[i].create);
        if (strcmp(statement.table, "multipartuploads") == 0) {
            struct fgw_migrate_diff diff;
            fgw_migrate_table_compare(&arena, statement.create,
                                      fgw_migrate_catalog_find(&catalog, statement.table), &diff);
            assert_false(diff.key || diff.type || diff.missing_count > 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(row32_splitting, setup, teardown),
        cmocka_unit_test_setup_teardown(row32_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(row32_large_file, setup, teardown),
        cmocka_unit_test_setup_teardown(row32_every_prefix, setup, teardown),
        cmocka_unit_test_setup_teardown(hashes, setup, teardown),
        cmocka_unit_test_setup_teardown(statements, setup, teardown),
        cmocka_unit_test_setup_teardown(refused_statements, setup, teardown),
        cmocka_unit_test_setup_teardown(differences, setup, teardown),
        cmocka_unit_test_setup_teardown(lint_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(embedded_sets, setup, teardown),
        cmocka_unit_test_setup_teardown(shared_schema, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
