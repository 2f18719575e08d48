/* piece_calls.c: see piece_calls.h. */
#include "bin/piece_calls.h"

#include <string.h>

static int refuse(json_t **out_answer, int status, const char *code, const char *message)
{
    *out_answer = json_pack("{s:s,s:s}", "error", code, "message", message);
    return status;
}

static uint64_t number(const json_t *body, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(body, name));
    return value < 0 ? UINT64_MAX : (uint64_t)value;
}

enum fgw_err fgw_piece_options(const json_t *body, struct fgw_piece_export *out_options,
                               struct fgw_error *error)
{
    struct fgw_piece_export options = {.group = number(body, "group"),
                                       .to = json_string_value(json_object_get(body, "to")),
                                       .padded_max = number(body, "padded_max"),
                                       .bytes_per_s = number(body, "bytes_per_s")};
    uint64_t size = options.padded_max == 0 ? FGW_PIECE_PADDED_DEFAULT : options.padded_max;
    if (size < FGW_PIECE_PADDED_MIN || size > FGW_PIECE_PADDED_MAX || (size & (size - 1)) != 0) {
        return fgw_error_set(error, FGW_ERR_INVALID_ARGUMENT,
                             "the size of a piece is a power of two from 1 MiB to 64 GiB");
    }
    if (options.to != NULL && options.to[0] != '/') {
        return fgw_error_set(error, FGW_ERR_INVALID_ARGUMENT, "\"to\" is an absolute path");
    }
    if (options.bytes_per_s == UINT64_MAX || options.group == UINT64_MAX) {
        return fgw_error_set(error, FGW_ERR_INVALID_ARGUMENT, "a number is negative");
    }
    options.padded_max = size;
    *out_options = options;
    return FGW_OK;
}

static int list(struct fgw_piece_worker *worker, json_t **out_answer)
{
    struct fgw_error error;
    json_t *pieces = NULL;
    fgw_error_init(&error);
    enum fgw_err err = fgw_piece_list(fgw_piece_worker_data_dir(worker), &pieces, &error);
    if (err != FGW_OK) {
        return refuse(out_answer, 500, fgw_err_s3_code(err), fgw_error_message(&error));
    }
    *out_answer = json_pack("{s:o}", "pieces", pieces);
    return 200;
}

static int start(struct fgw_piece_worker *worker, const struct fgw_admin_request *request,
                 json_t **out_answer)
{
    struct fgw_error error;
    struct fgw_piece_export options;
    fgw_error_init(&error);
    if (fgw_piece_options(request->body, &options, &error) != FGW_OK) {
        return refuse(out_answer, 400, "InvalidArgument", fgw_error_message(&error));
    }
    if (options.to != NULL && !request->local) {
        return refuse(out_answer, 403, "AccessDenied",
                      "files are written outside of the data directory for its own user only: "
                      "without \"to\", or over admin.sock");
    }
    if (!fgw_piece_worker_start(worker, &options)) {
        return refuse(out_answer, 409, "Conflict", "an export is running");
    }
    *out_answer = fgw_piece_worker_status(worker);
    return 202;
}

static int execute(void *context, const struct fgw_admin_request *request, json_t **out_answer)
{
    struct fgw_piece_worker *worker = context;
    bool get = strcmp(request->method, "GET") == 0;
    if (request->name.len == 0 && get) {
        return list(worker, out_answer);
    }
    if (!fgw_bytes_eq_str(request->name, "export")) {
        return refuse(out_answer, 404, "NotFound", "no such call");
    }
    if (strcmp(request->method, "POST") == 0) {
        return start(worker, request, out_answer);
    }
    if (strcmp(request->method, "DELETE") == 0) {
        fgw_piece_worker_cancel(worker);
    } else if (!get) {
        return refuse(out_answer, 405, "MethodNotAllowed", "GET, POST or DELETE");
    }
    *out_answer = fgw_piece_worker_status(worker);
    return 200;
}

struct fgw_admin_extra fgw_piece_calls(struct fgw_piece_worker *worker)
{
    return (struct fgw_admin_extra){"pieces", execute, worker};
}
