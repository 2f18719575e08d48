/* admin_client.c: see admin_client.h. */
#include "bin/admin_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "bin/credentials.h"
#include "bin/server.h"
#include "bin/store.h"
#include "event/fiber.h"
#include "http/client.h"
#include "meta/rocks/rocks.h"
#include "sigv4/sign.h"

enum { ANSWER_MAX = 64 * 1024 * 1024, DEADLINE_MS = 60000, STORE_MEMORY = 64 << 20 };

struct errand {
    const struct fgw_config *config;
    const struct fgw_admin_call *call;
    int status; /* HTTP; 0: no process answered */
    int exit_code;
    json_t *answer;
    bool unreachable;       /* of --admin: status and answer are ours */
    struct fgw_error error; /* of a request that nothing answered */
};

/* One request; status stays 0 when nothing answers. */
static void fetch(struct errand *errand, const struct fgw_http_client_options *options,
                  struct fgw_http_call_options *call, struct fgw_bytes body)
{
    struct fgw_buf out;
    fgw_buf_init(&out, ANSWER_MAX);
    fgw_error_init(&errand->error);
    struct fgw_http_client *client = fgw_http_client_new(options);
    int status = 0;
    call->method = errand->call->method;
    call->deadline_ms = fgw_loop_now_ms(fgw_loop_current()) + DEADLINE_MS;
    if (fgw_http_fetch(client, call, body, &status, &out, &errand->error) == FGW_OK) {
        errand->status = status;
        errand->answer = json_loadb((const char *)out.ptr, out.len, 0, NULL);
    }
    fgw_http_client_free(client);
    fgw_buf_deinit(&out);
}

static char *body_of(const struct errand *errand)
{
    return errand->call->body == NULL ? NULL : json_dumps(errand->call->body, JSON_COMPACT);
}

static void ask_socket(struct errand *errand)
{
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    struct fgw_http_client_options options = {
        .address = fgw_arena_printf(&arena, "unix:%s/admin.sock", errand->config->data_dir),
        .host = "admin"};
    struct fgw_http_call_options call = {.target = fgw_bytes_str(errand->call->path)};
    char *body = body_of(errand);
    fetch(errand, &options, &call, fgw_bytes_str(body));
    fgw_xfree(body);
    fgw_arena_deinit(&arena);
}

/* -- over the network ---------------------------------------------------------------------------- */

static enum fgw_err sign(struct errand *errand, struct fgw_arena *arena, const char *host,
                         struct fgw_http_call_options *call, struct fgw_bytes body)
{
    const struct fgw_config *config = errand->config;
    struct fgw_sig_header headers[] = {{FGW_LIT("host"), fgw_bytes_str(host)}};
    struct fgw_sig_signer signer = {.access_key = fgw_bytes_str(config->root_access_key),
                                    .secret = fgw_bytes_str(config->root_secret_key),
                                    .region = fgw_bytes_str(config->region),
                                    .service = FGW_LIT("fgw"),
                                    .now_ms = fgw_clock_wall_ms()};
    size_t question = fgw_bytes_find_byte(call->target, '?');
    struct fgw_sig_request request = {.method = fgw_bytes_str(errand->call->method),
                                      .raw_path = fgw_bytes_sub(call->target, 0, question),
                                      .headers = headers,
                                      .header_count = 1};
    if (question != SIZE_MAX) {
        request.raw_query = fgw_bytes_sub(call->target, question + 1, SIZE_MAX);
    }
    uint8_t digest[FGW_SHA256_SIZE];
    struct fgw_sig_signed made;
    fgw_sha256(body, digest);
    struct fgw_bytes payload = fgw_bytes_str(fgw_hex(arena, fgw_bytes(digest, sizeof digest)));
    enum fgw_err err = fgw_sig_sign(arena, &signer, &request, payload, &made);
    if (err == FGW_OK) {
        struct fgw_http_header *sent = fgw_arena_alloc(arena, 3 * sizeof *sent);
        sent[0] = (struct fgw_http_header){FGW_LIT("Authorization"), made.authorization};
        sent[1] = (struct fgw_http_header){FGW_LIT("x-amz-date"), made.amz_date};
        sent[2] = (struct fgw_http_header){FGW_LIT("x-amz-content-sha256"), made.content_sha256};
        call->headers = sent;
        call->header_count = 3;
    }
    return err;
}

const char *fgw_admin_address(struct fgw_arena *arena, const char *url)
{
    struct fgw_bytes rest = fgw_bytes_str(url);
    if (!fgw_bytes_starts_with(rest, FGW_LIT("http://"))) {
        return NULL;
    }
    rest = fgw_bytes_sub(rest, sizeof "http://" - 1, SIZE_MAX);
    if (fgw_bytes_ends_with(rest, FGW_LIT("/"))) {
        rest.len--;
    }
    bool has_port = rest.len > 0 && fgw_bytes_find_byte(rest, ':') != SIZE_MAX &&
                    rest.ptr[rest.len - 1] >= '0' && rest.ptr[rest.len - 1] <= '9';
    return has_port && fgw_bytes_find_byte(rest, '/') == SIZE_MAX ? fgw_arena_strdup(arena, rest)
                                                                  : NULL;
}

/* What there is to say when no process could be asked, as an answer. */
static void answer_for_it(struct errand *errand, int status, const char *text, const char *detail)
{
    char message[700];
    (void)snprintf(message, sizeof message, "%s%s", text, detail);
    errand->status = status;
    errand->answer = json_pack("{s:s}", "message", message);
}

static void ask_listener(struct errand *errand)
{
    const struct fgw_config *config = errand->config;
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    const char *address = fgw_admin_address(&arena, config->admin_url);
    char *text = body_of(errand);
    struct fgw_bytes body = fgw_bytes_str(text);
    const char *path = errand->call->path + sizeof "/admin/" - 1;
    struct fgw_http_call_options call = {
        .target = fgw_bytes_str(fgw_arena_printf(&arena, "/api/%s", path))};
    if (address == NULL) {
        answer_for_it(errand, 400, "--admin takes http://HOST:PORT of an ops listener, not ",
                      config->admin_url);
    } else if (config->root_access_key == NULL || config->root_secret_key == NULL) {
        answer_for_it(errand, 400,
                      "--admin needs FGW_ROOT_ACCESS_KEY and FGW_ROOT_SECRET_KEY, those of root "
                      "or of a user with policy admin",
                      "");
    } else if (sign(errand, &arena, address, &call, body) != FGW_OK) {
        answer_for_it(errand, 400, "the request cannot be signed for region ", config->region);
    } else {
        struct fgw_http_client_options options = {.address = address, .host = address};
        fetch(errand, &options, &call, body);
        errand->unreachable = errand->status == 0;
        if (errand->unreachable) {
            const char *what = fgw_arena_printf(&arena, "%s does not answer: ", config->admin_url);
            answer_for_it(errand, 503, what, fgw_error_message(&errand->error));
        }
    }
    fgw_xfree(text);
    fgw_arena_deinit(&arena);
}

static void ask(struct errand *errand)
{
    if (errand->config->admin_url != NULL) {
        ask_listener(errand);
    } else {
        ask_socket(errand);
    }
}

int fgw_admin_ask_process(const struct fgw_config *config, const struct fgw_admin_call *call,
                          json_t **out_answer)
{
    struct errand errand = {.config = config, .call = call};
    ask(&errand);
    *out_answer = errand.answer;
    return errand.status;
}

struct question {
    const char *address;
    const char *path;
    int status;
    json_t *answer;
};

static void ask_ops(void *arg)
{
    struct question *question = arg;
    struct fgw_admin_call get = {.method = "GET"};
    struct errand errand = {.call = &get};
    struct fgw_http_client_options options = {.address = question->address};
    struct fgw_http_call_options call = {.target = fgw_bytes_str(question->path)};
    fetch(&errand, &options, &call, fgw_bytes(NULL, 0));
    question->status = errand.status;
    question->answer = errand.answer;
}

int fgw_admin_ask_ops(const char *address, const char *path, json_t **out_answer)
{
    struct question question = {.address = address, .path = path};
    fgw_fiber_run_alone(ask_ops, &question);
    *out_answer = question.answer;
    return question.status;
}

/* -- without a process --------------------------------------------------------------------------- */

static void ask_directly(struct errand *errand, struct fgw_storage *storage)
{
    const char *question = strchr(errand->call->path, '?');
    size_t len =
        question == NULL ? strlen(errand->call->path) : (size_t)(question - errand->call->path);
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
    struct fgw_admin admin = {.meta = meta,
                              .storage = storage,
                              .root_id = fgw_bytes(root_id, sizeof root_id),
                              .root_access_key = credentials.access_key,
                              .region = errand->config->region};
    errand->status =
        fgw_admin_execute(&admin, errand->call->method, fgw_bytes(errand->call->path, len),
                          question == NULL ? fgw_bytes(NULL, 0) : fgw_bytes_str(question + 1),
                          errand->call->body, &errand->answer);
    meta->ops->free(meta);
}

static void run(void *arg)
{
    struct errand *errand = arg;
    struct fgw_storage *storage = NULL;
    ask(errand);
    if (errand->status != 0) {
        return;
    }
    struct fgw_storage_options options = fgw_store_options(errand->config);
    options.memory_bytes = STORE_MEMORY;
    errand->exit_code = fgw_store_open_existing(&options, &storage);
    if (errand->exit_code == FGW_EXIT_OK) {
        ask_directly(errand, storage);
        fgw_storage_close(storage);
    }
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
        int exit_code = errand.status == 400 ? FGW_EXIT_USAGE : FGW_EXIT_INTERNAL;
        return errand.unreachable ? FGW_EXIT_NOT_READY : exit_code;
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
    const char *path =
        fgw_arena_printf(arena, "%s%.*s%s", prefix, FGW_FMT(fgw_buf_bytes(&encoded)), suffix);
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
        (void)printf("%-*s", width,
                     json_is_true(value)    ? "yes"
                     : json_is_false(value) ? "no"
                                            : "-");
    }
}

static int width_of(const json_t *rows, const char *column)
{
    size_t width = strlen(column);
    size_t index;
    const json_t *row;
    json_array_foreach(rows, index, row)
    {
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
    json_array_foreach(rows, index, row)
    {
        for (size_t i = 0; columns[i] != NULL; i++) {
            print_value(json_object_get(row, columns[i]), width_of(rows, columns[i]));
        }
        (void)printf("\n");
    }
    return fflush(stdout) == 0 ? FGW_EXIT_OK : FGW_EXIT_INTERNAL;
}
