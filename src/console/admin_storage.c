/* admin_storage.c: see admin_storage.h. */
#include "console/admin_storage.h"

#include <string.h>

enum { VERIFY_BYTES = 128 * 1024 * 1024 }; /* of a group in one call */

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

/* -- groups -------------------------------------------------------------------------------------- */

static json_t *group_json(const struct fgw_storage_group *group)
{
    const char *state = group->missing ? "damaged" : group->writing ? "writing" : "sealed";
    return json_pack("{s:o,s:s,s:s,s:o,s:o,s:o,s:o,s:o}", "id", integer(group->id), "kind",
                     group->bulk ? "bulk" : "log", "state", state, "end", integer(group->end),
                     "file_bytes", integer(group->file_bytes), "live_blocks",
                     integer(group->live_blocks), "live_bytes", integer(group->live_bytes),
                     "dead_bytes", integer(group->dead_bytes));
}

static int failed(enum fgw_err err, json_t **out_answer)
{
    bool absent = err == FGW_ERR_NOT_FOUND;
    *out_answer = refusal(absent ? "NotFound" : fgw_err_s3_code(err),
                          absent ? "there is no such group" : fgw_err_text(err));
    return absent ? 404 : fgw_err_http_status(err);
}

static int list_groups(struct fgw_storage *storage, json_t **out_answer)
{
    struct fgw_storage_group *groups = NULL;
    size_t count = 0;
    enum fgw_err err = fgw_storage_groups(storage, &groups, &count);
    if (err != FGW_OK) {
        return failed(err, out_answer);
    }
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, group_json(&groups[i]));
    }
    fgw_xfree(groups);
    *out_answer = json_pack("{s:o}", "groups", list);
    return 200;
}

static int show_group(struct fgw_storage *storage, uint64_t id, json_t **out_answer)
{
    struct fgw_storage_group group;
    enum fgw_err err = fgw_storage_group_get(storage, id, &group);
    if (err != FGW_OK) {
        return failed(err, out_answer);
    }
    *out_answer = group_json(&group);
    return 200;
}

static int seal_group(struct fgw_storage *storage, uint64_t id, json_t **out_answer)
{
    enum fgw_err err = fgw_storage_group_seal(storage, id);
    return err == FGW_OK ? show_group(storage, id, out_answer) : failed(err, out_answer);
}

static int verify_group(struct fgw_storage *storage, uint64_t id, const json_t *body,
                        json_t **out_answer)
{
    json_int_t offset = json_integer_value(json_object_get(body, "offset"));
    struct fgw_storage_group_check check = {.group = id, .offset = (uint64_t)offset};
    enum fgw_err err = offset < 0 ? FGW_ERR_INVALID_ARGUMENT
                                  : fgw_storage_group_verify(storage, &check, VERIFY_BYTES);
    if (err != FGW_OK) {
        return failed(err, out_answer);
    }
    *out_answer = json_pack("{s:o,s:o,s:o,s:b,s:b}", "id", integer(id), "offset",
                            integer(check.offset), "sections", integer(check.sections), "done",
                            check.done, "damaged", check.damaged);
    return 200;
}

static int on_groups(struct fgw_storage *storage, const struct fgw_admin_storage_call *call,
                     json_t **out_answer)
{
    uint64_t id = 0;
    bool get = strcmp(call->method, "GET") == 0;
    if (call->name.len == 0) {
        return get ? list_groups(storage, out_answer) : 0;
    }
    if (fgw_bytes_to_u64(call->name, &id) != FGW_OK) {
        return failed(FGW_ERR_NOT_FOUND, out_answer);
    }
    if (get && call->verb.len == 0) {
        return show_group(storage, id, out_answer);
    }
    if (get) {
        return 0;
    }
    if (fgw_bytes_eq_str(call->verb, "seal")) {
        return seal_group(storage, id, out_answer);
    }
    return fgw_bytes_eq_str(call->verb, "verify")
               ? verify_group(storage, id, call->body, out_answer)
               : 0;
}

/* -- dispatch ------------------------------------------------------------------------------------ */

int fgw_admin_storage_execute(struct fgw_storage *storage,
                              const struct fgw_admin_storage_call *call, json_t **out_answer)
{
    bool get = strcmp(call->method, "GET") == 0;
    bool post = strcmp(call->method, "POST") == 0;
    if (fgw_bytes_eq_str(call->kind, "groups") && (get || post)) {
        return on_groups(storage, call, out_answer);
    }
    if (fgw_bytes_eq_str(call->kind, "backup") && call->name.len == 0 && (get || post)) {
        if (post) {
            return begin_backup(storage, call->body, out_answer);
        }
        *out_answer = backup_json(storage);
        return 200;
    }
    return 0;
}
