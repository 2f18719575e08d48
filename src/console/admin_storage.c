/* admin_storage.c: see admin_storage.h. */
#include "console/admin_storage.h"

#include <stdarg.h>
#include <string.h>

static json_t *refusal(const char *code, const char *message)
{
    return json_pack("{s:s,s:s}", "error", code, "message", message);
}

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* -- backup -------------------------------------------------------------------------------------- */

static json_t *backup_json(struct fgw_storage *storage)
{
    static const char *const STATES[] = {"none", "running", "done", "failed"};
    struct fgw_storage_backup_status status;
    fgw_storage_backup_status(storage, &status);
    json_t *answer =
        json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "state", STATES[status.state], "to",
                  status.to, "batch", integer(status.batch), "files", integer(status.files),
                  "files_total", integer(status.files_total), "bytes", integer(status.bytes),
                  "bytes_total", integer(status.bytes_total), "damaged", integer(status.damaged));
    if (status.state == FGW_STORAGE_BACKUP_FAILED) {
        (void)json_object_set_new(answer, "error", json_string(fgw_err_name(status.result)));
        (void)json_object_set_new(answer, "message", json_string(status.message));
    }
    return answer;
}

static int begin_backup(struct fgw_storage *storage, const json_t *body, json_t **out_answer)
{
    const char *to = json_string_value(json_object_get(body, "to"));
    struct fgw_error error;
    fgw_error_init(&error);
    if (to == NULL || to[0] != '/') {
        *out_answer = refusal("InvalidArgument", "\"to\" is an absolute path");
        return 400;
    }
    enum fgw_err err = fgw_storage_backup_start(storage, to);
    if (err == FGW_ERR_UNAVAILABLE) {
        err = fgw_storage_backup(storage, to, &error); /* its outcome is in the state */
        err = err == FGW_ERR_IN_USE ? err : FGW_OK;
    }
    if (err != FGW_OK) {
        *out_answer = refusal("Conflict", "a backup is being made already");
        return 409;
    }
    *out_answer = backup_json(storage);
    return 200;
}

/* -- dispatch ------------------------------------------------------------------------------------ */

int fgw_admin_storage_execute(struct fgw_storage *storage,
                              const struct fgw_admin_storage_call *call, json_t **out_answer)
{
    bool get = strcmp(call->method, "GET") == 0;
    bool post = strcmp(call->method, "POST") == 0;
    if (fgw_bytes_eq_str(call->kind, "backup") && call->name.len == 0 && (get || post)) {
        if (post) {
            return begin_backup(storage, call->body, out_answer);
        }
        *out_answer = backup_json(storage);
        return 200;
    }
    return 0;
}
