/* embed.c: the build's generator. fgw_migrate_embed OUT.c --set NAME FILES...: reads
 * <version>_<name>.cql files of each set, holds them against the lint
 * rules of set.h and writes them as C with the hash of each file and statement. Any failure is a
 * build error that names file and line. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/fs.h"
#include "migrate/set.h"

enum { FILES_MAX = 500, FILE_BYTES_MAX = 4 << 20 };

struct generator {
    struct fgw_arena arena;
    FILE *out;
    const char *set;
    struct fgw_migrate_source sources[FILES_MAX];
    size_t count;
};

static bool read_source(struct generator *g, const char *path)
{
    const char *base = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;
    struct fgw_bytes rest = fgw_bytes_str(base);
    struct fgw_bytes version;
    uint64_t number;
    if (!fgw_bytes_ends_with(rest, FGW_LIT(".cql")) || !fgw_bytes_split(&rest, '_', &version) ||
        fgw_bytes_to_u64(version, &number) != FGW_OK || number > INT64_MAX ||
        g->count == FILES_MAX) {
        (void)fprintf(stderr, "%s: named <version>_<name>.cql\n", path);
        return false;
    }
    struct fgw_buf text;
    fgw_buf_init(&text, FILE_BYTES_MAX);
    bool good = fgw_fs_read_file(AT_FDCWD, path, &text) == FGW_OK;
    if (good) {
        struct fgw_bytes copy = fgw_arena_copy(&g->arena, fgw_buf_bytes(&text));
        rest.len -= 4;
        g->sources[g->count++] = (struct fgw_migrate_source){
            .version = (int64_t)number,
            .name = fgw_arena_strdup(&g->arena, rest),
            .text = (const char *)copy.ptr,
            .text_len = copy.len,
        };
    } else {
        (void)fprintf(stderr, "%s: cannot be read\n", path);
    }
    fgw_buf_deinit(&text);
    return good;
}

static void write_text(FILE *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        (void)fprintf(out, i % 20 == 0 ? "\n    %d," : "%d,", (int)(signed char)text[i]);
    }
    (void)fprintf(out, "0\n};\n");
}

static void write_file(struct generator *g, const struct fgw_migrate_file *file,
                       const struct fgw_migrate_source *source)
{
    (void)fprintf(g->out, "static const char %s_%" PRId64 "_text[] = {", g->set, file->version);
    write_text(g->out, source->text, source->text_len);
    (void)fprintf(g->out, "static const char *const %s_%" PRId64 "_shas[] = {\n", g->set,
                  file->version);
    for (int i = 0; i < file->step_count; i++) {
        (void)fprintf(g->out, "    \"%s\",\n", file->steps[i].statement.sha);
    }
    (void)fprintf(g->out, "};\n");
}

static bool write_set(struct generator *g)
{
    if (g->set == NULL) {
        return true;
    }
    struct fgw_error error;
    fgw_error_init(&error);
    struct fgw_migrate_set set;
    if (fgw_migrate_set_build(&g->arena, g->set, g->sources, g->count, &error, &set) != FGW_OK) {
        (void)fprintf(stderr, "migrations/%s\n", fgw_error_message(&error));
        return false;
    }
    for (size_t i = 0; i < set.file_count; i++) {
        write_file(g, &set.files[i], &g->sources[i]);
    }
    (void)fprintf(g->out, "static const struct fgw_migrate_source %s_sources[] = {\n", g->set);
    for (size_t i = 0; i < set.file_count; i++) {
        const struct fgw_migrate_file *file = &set.files[i];
        (void)fprintf(g->out,
                      "    {%" PRId64 ", \"%s\", %s_%" PRId64 "_text, %zu, \"%s\", %s_%" PRId64
                      "_shas, %d},\n",
                      file->version, file->name, g->set, file->version, g->sources[i].text_len,
                      file->sha, g->set, file->version, file->step_count);
    }
    (void)fprintf(g->out, "};\n\n");
    return true;
}

static void write_lookup(struct generator *g, char *const sets[], size_t count)
{
    (void)fprintf(g->out, "const struct fgw_migrate_source *fgw_migrate_embedded(const char *name,"
                          " size_t *out_count)\n{\n");
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(g->out,
                      "    if (strcmp(name, \"%s\") == 0) {\n"
                      "        *out_count = sizeof %s_sources / sizeof %s_sources[0];\n"
                      "        return %s_sources;\n    }\n",
                      sets[i], sets[i], sets[i], sets[i]);
    }
    (void)fprintf(g->out, "    return NULL;\n}\n");
}

static bool generate(struct generator *g, int argc, char **argv)
{
    char *sets[8];
    size_t set_count = 0;
    (void)fprintf(g->out, "/* made by fgw_migrate_embed from migrations/ */\n"
                          "#include <string.h>\n\n#include \"migrate/set.h\"\n\n");
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--set") != 0) {
            if (!read_source(g, argv[i])) {
                return false;
            }
            continue;
        }
        if (!write_set(g) || i + 1 == argc || set_count == FGW_COUNT_OF(sets)) {
            return false;
        }
        g->set = argv[++i];
        g->count = 0;
        sets[set_count++] = argv[i];
    }
    if (!write_set(g)) {
        return false;
    }
    write_lookup(g, sets, set_count);
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        (void)fprintf(stderr, "usage: fgw_migrate_embed OUT.c --set NAME FILES... [--set ...]\n");
        return 2;
    }
    static struct generator g;
    fgw_arena_init(&g.arena, 0);
    g.out = fopen(argv[1], "w");
    bool good = g.out != NULL && generate(&g, argc, argv);
    if (g.out != NULL && fclose(g.out) != 0) {
        good = false;
    }
    fgw_arena_deinit(&g.arena);
    if (!good) {
        (void)remove(argv[1]);
    }
    return good ? 0 : 1;
}
