/* admin_client.c: see admin_client.h. */
#include "bin/admin_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/encode.h"
#include "bin/credentials.h"
#include "bin/server.h"
#include "console/admin.h"
#include "event/fiber.h"
#include "http/client.h"
#include "meta/rocks/rocks.h"

enum { ANSWER_MAX = 64 * 1024 * 1024, DEADLINE_MS = 60000, STORE_MEMORY = 64 << 20 };

struct errand {
    const struct fgw_config *config;
    const struct fgw_admin_call *call;
    int status; /* HTTP; 0: no process answered */
    int exit_code;
    json_t *answer;
};

static void ask_socket(struct errand *errand)
{
    struct fgw_arena arena;
    struct fgw_buf out;
    struct fgw_error error;
    fgw_arena_init(&arena, 0);
    fgw_buf_init(&out, ANSWER_MAX);
    fgw_error_init(&error);
    struct fgw_http_client_options options = {
        .address = fgw_arena_printf(&arena, "unix:%s/admin.sock", errand->config->data_dir),
        .host = "admin"};
    struct fgw_http_client *client = fgw_http_client_new(&options);
    char *text = errand->call->body == NULL ? NULL : json_dumps(errand->call->body, JSON_COMPACT);
    struct fgw_http_call_options call = {
        .method = errand->call->method,
        .target = fgw_bytes_str(errand->call->path),
        .deadline_ms = fgw_loop_now_ms(fgw_loop_current()) + DEADLINE_MS};
    int status = 0;
    if (fgw_http_fetch(client, &call, fgw_bytes_str(text), &status, &out, &error) == FGW_OK) {
        errand->status = status;
        errand->answer = json_loadb((const char *)out.ptr, out.len, 0, NULL);
    }
    fgw_xfree(text);
    fgw_http_client_free(client);
    fgw_buf_deinit(&out);
    fgw_arena_deinit(&arena);
}

static void ask_directly(struct errand *errand, struct fgw_storage *storage)
{
    const char *question = strchr(errand->call->path, '?');
    size_t len = question == NULL ? strlen(errand->call->path)
                                  : (size_t)(question - errand->call->path);
    struct fgw_credentials credentials;
    struct fgw_error error;
    uint8_t digest[FGW_SHA256_SIZE];
    char root_id[2 * FGW_SHA256_SIZE];
    fgw_error_init(&error);
    if (fgw_credentials_load(errand->config, &credentials, &error) != FGW_OK) {
        (void)fprintf(stderr, "fgw: error: %s\n", fgw_error_message(&error));
        errand->exit_code = FGW_EXIT_USAGE;
        return;
    }
    fgw_sha256(fgw_bytes_str(credentials.access_key), digest);
    fgw_hex_encode(fgw_bytes(digest, sizeof digest), root_id);
    struct fgw_meta *meta = fgw_meta_rocks_new(storage);
    struct fgw_admin admin = {.meta = meta, .storage = storage, .root_id = fgw_bytes(root_id, sizeof root_id),
                              .root_access_key = credentials.access_key,
                              .region = errand->config->region};
    errand->status = fgw_admin_execute(
        &admin, errand->call->method, fgw_bytes(errand->call->path, len),
        question == NULL ? fgw_bytes(NULL, 0) : fgw_bytes_str(question + 1), errand->call->body,
        &errand->answer);
    meta->ops->free(meta);
}

static void run(void *arg)
{
    struct errand *errand = arg;
    struct fgw_error error;
    struct fgw_storage *storage = NULL;
    struct stat status;
    ask_socket(errand);
    if (errand->status != 0) {
        return;
    }
    if (stat(errand->config->data_dir, &status) != 0) {
        (void)fprintf(stderr, "fgw: error: there is no data directory %s; name it with --data\n",
                      errand->config->data_dir);
        errand->exit_code = FGW_EXIT_DATA_UNUSABLE;
        return;
    }
    fgw_error_init(&error);
    struct fgw_storage_options options = {.path = errand->config->data_dir,
                                          .memory_bytes = STORE_MEMORY,
                                          .group_size_bytes = UINT64_C(4) << 30,
                                          .dead_percent = 50};
    enum fgw_err err = fgw_storage_open(&options, &storage, &error);
    if (err != FGW_OK) {
        (void)fprintf(stderr, "fgw: error: %s\n", fgw_error_message(&error));
        errand->exit_code = fgw_exit_of(err);
        return;
    }
    ask_directly(errand, storage);
    fgw_storage_close(storage);
}

int fgw_admin_call(const struct fgw_config *config, const struct fgw_admin_call *call,
                   json_t **out_answer)
{
    struct errand errand = {.config = config, .call = call};
    fgw_fiber_run_alone(run, &errand);
    if (errand.exit_code != FGW_EXIT_OK) {
        json_decref(errand.answer);
        return errand.exit_code;
    }
    if (errand.status < 200 || errand.status > 299 || errand.answer == NULL) {
        const char *message = json_string_value(json_object_get(errand.answer, "message"));
        (void)fprintf(stderr, "fgw: error: %s\n",
                      message == NULL ? "the process gave no answer that can be read" : message);
        json_decref(errand.answer);
        return errand.status == 400 ? FGW_EXIT_USAGE : FGW_EXIT_INTERNAL;
    }
    *out_answer = errand.answer;
    return FGW_EXIT_OK;
}

const char *fgw_admin_path(struct fgw_arena *arena, const char *prefix, const char *name,
                           const char *suffix)
{
    struct fgw_buf encoded;
    fgw_buf_init(&encoded, 0);
    (void)fgw_uri_encode(&encoded, fgw_bytes_str(name), false);
    const char *path = fgw_arena_printf(arena, "%s%.*s%s", prefix,
                                        FGW_FMT(fgw_buf_bytes(&encoded)), suffix);
    fgw_buf_deinit(&encoded);
    return path;
}

static void print_value(const json_t *value, int width)
{
    if (json_is_string(value)) {
        (void)printf("%-*s", width, json_string_value(value));
    } else if (json_is_integer(value)) {
        (void)printf("%-*lld", width, (long long)json_integer_value(value));
    } else {
        (void)printf("%-*s", width, json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "-");
    }
}

static int width_of(const json_t *rows, const char *column)
{
    size_t width = strlen(column);
    size_t index;
    const json_t *row;
    json_array_foreach(rows, index, row) {
        const char *text = json_string_value(json_object_get(row, column));
        size_t len = text == NULL ? 10 : strlen(text);
        width = len > width ? len : width;
    }
    return (int)width + 2;
}

int fgw_admin_print(const json_t *answer, const char *list, const char *const *columns, bool json)
{
    if (json) {
        int failed = json_dumpf(answer, stdout, JSON_INDENT(2));
        (void)printf("\n");
        return failed == 0 && fflush(stdout) == 0 ? FGW_EXIT_OK : FGW_EXIT_INTERNAL;
    }
    if (list == NULL) {
        for (size_t i = 0; columns[i] != NULL; i++) {
            const json_t *value = json_object_get(answer, columns[i]);
            if (value != NULL) {
                (void)printf("%-14s ", columns[i]);
                print_value(value, 0);
                (void)printf("\n");
            }
        }
        return fflush(stdout) == 0 ? FGW_EXIT_OK : FGW_EXIT_INTERNAL;
    }
    const json_t *rows = json_object_get(answer, list);
    size_t index;
    const json_t *row;
    for (size_t i = 0; columns[i] != NULL; i++) {
        (void)printf("%-*s", width_of(rows, columns[i]), columns[i]);
    }
    (void)printf("\n");
    json_array_foreach(rows, index, row) {
        for (size_t i = 0; columns[i] != NULL; i++) {
            print_value(json_object_get(row, columns[i]), width_of(rows, columns[i]));
        }
        (void)printf("\n");
    }
    return fflush(stdout) == 0 ? FGW_EXIT_OK : FGW_EXIT_INTERNAL;
}
