/* cql_keyspace.c: see cql_keyspace.h. */
#include "contract/meta/cql_keyspace.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/rng.h"
#include "event/fiber.h"
#include "migrate/tokenizer.h"

static void give_up(const char *what, const struct fgw_error *error)
{
    (void)fprintf(stderr, "%s: %s\n", what, fgw_error_message(error));
    abort();
}

bool cql_keyspace_configured(void)
{
    return getenv("FGW_TEST_CQL_HOSTS") != NULL;
}

static void run_text(struct cql_keyspace *keyspace, const char *text)
{
    struct fgw_cql_result *result = NULL;
    struct fgw_error error;
    struct fgw_cql_options options = {.deadline_ms = fgw_loop_now_ms(fgw_loop_current()) + 60000};
    fgw_error_init(&error);
    if (fgw_cql_query(keyspace->client, text, FGW_CQL_DDL, &options, &result, &error) != FGW_OK) {
        give_up(text, &error);
    }
    fgw_cql_result_free(result);
}

/* "CREATE TABLE x" and "ALTER TABLE x" get the keyspace in front of the name. */
static void run_statement(struct cql_keyspace *keyspace, struct fgw_arena *arena,
                          struct fgw_migrate_tokens tokens)
{
    struct fgw_buf text;
    fgw_buf_init(&text, 0);
    for (size_t i = 0; i < tokens.count; i++) {
        if (i == 2) {
            (void)fgw_buf_appendf(&text, "%s.", keyspace->name);
        }
        (void)fgw_buf_append(&text, tokens.items[i].text);
        (void)fgw_buf_append_byte(&text, ' ');
    }
    run_text(keyspace, fgw_arena_strdup(arena, fgw_buf_bytes(&text)));
    fgw_buf_deinit(&text);
}

static void run_file(struct cql_keyspace *keyspace, struct fgw_arena *arena, const char *path)
{
    struct fgw_buf text;
    struct fgw_migrate_texts statements;
    struct fgw_error error;
    fgw_error_init(&error);
    fgw_buf_init(&text, 1 << 20);
    if (fgw_fs_read_file(AT_FDCWD, path, &text) != FGW_OK ||
        fgw_migrate_split(arena, fgw_buf_bytes(&text), &error, &statements) != FGW_OK) {
        give_up(path, &error);
    }
    for (size_t i = 0; i < statements.count; i++) {
        run_statement(keyspace, arena, statements.items[i]);
    }
    fgw_buf_deinit(&text);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    /* the legacy version has fewer digits and comes first */
    size_t a_len = strspn((*a)->d_name, "0123456789");
    size_t b_len = strspn((*b)->d_name, "0123456789");
    return a_len != b_len ? (a_len < b_len ? -1 : 1) : strcmp((*a)->d_name, (*b)->d_name);
}

static int is_migration(const struct dirent *entry)
{
    return strstr(entry->d_name, ".cql") != NULL;
}

static void apply_migrations(struct cql_keyspace *keyspace)
{
    struct fgw_arena arena;
    struct dirent **entries = NULL;
    fgw_arena_init(&arena, 0);
    int count = scandir(FGW_MIGRATIONS_DIR "/shared", &entries, is_migration, by_name);
    if (count <= 0) {
        (void)fprintf(stderr, "no migrations in %s\n", FGW_MIGRATIONS_DIR);
        abort();
    }
    for (int i = 0; i < count; i++) {
        run_file(keyspace, &arena,
                 fgw_arena_printf(&arena, "%s/shared/%s", FGW_MIGRATIONS_DIR, entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
    fgw_arena_deinit(&arena);
}

void cql_keyspace_open(struct cql_keyspace *keyspace)
{
    const char *port = getenv("FGW_TEST_CQL_PORT");
    struct fgw_error error;
    char text[256];
    struct fgw_cql_settings settings = {.hosts = getenv("FGW_TEST_CQL_HOSTS"),
                                        .contact_points_only = true};
    settings.port = port == NULL ? 0 : (uint16_t)strtoul(port, NULL, 10);
    fgw_error_init(&error);
    fgw_log_configure(FGW_LOG_DEBUG, false); /* why a statement failed */
    if (fgw_cql_config_new(&settings, &keyspace->config, &error) != FGW_OK) {
        give_up("settings", &error);
    }
    keyspace->client = fgw_cql_client_new(fgw_loop_current(), keyspace->config);
    if (fgw_cql_client_wait_ready(keyspace->client, fgw_loop_now_ms(fgw_loop_current()) + 30000,
                                  &error) != FGW_OK) {
        give_up("connecting", &error);
    }
    (void)snprintf(keyspace->name, sizeof keyspace->name, "fgw_meta_%llx",
                   (unsigned long long)fgw_rng_u64());
    (void)snprintf(text, sizeof text,
                   "CREATE KEYSPACE %s WITH replication = "
                   "{'class': 'SimpleStrategy', 'replication_factor': 1}",
                   keyspace->name);
    run_text(keyspace, text);
    apply_migrations(keyspace);
}

void cql_keyspace_close(struct cql_keyspace *keyspace)
{
    char text[128];
    (void)snprintf(text, sizeof text, "DROP KEYSPACE %s", keyspace->name);
    run_text(keyspace, text);
    fgw_cql_client_free(keyspace->client);
    fgw_cql_config_free(keyspace->config);
}
