/* fuzz_cql_text.c: migration files: tokens, statements, and the promise that a statement's
 * normalised text means the same statement. */
#include "base/check.h"
#include "migrate/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(struct fgw_arena *arena, const struct fgw_migrate_statement *statement)
{
    struct fgw_migrate_statement again;
    FGW_CHECK(fgw_migrate_parse_text(arena, statement->text, NULL, &again) == FGW_OK);
    FGW_CHECK(strcmp(again.sha, statement->sha) == 0);
    FGW_CHECK(again.class == statement->class && strcmp(again.table, statement->table) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    struct fgw_migrate_texts texts;
    struct fgw_error error;
    fgw_error_init(&error);
    if (fgw_migrate_split(&arena, fgw_bytes(data, size), &error, &texts) == FGW_OK) {
        for (size_t i = 0; i < texts.count; i++) {
            struct fgw_migrate_statement statement;
            if (fgw_migrate_parse(&arena, texts.items[i], &error, &statement) == FGW_OK) {
                check_again(&arena, &statement);
            }
        }
    }
    fgw_arena_deinit(&arena);
    return 0;
}
