/* store_calls.c: see store_calls.h. */
#include "bin/store_calls.h"

#include <string.h>

#include "base/bytes.h"
#include "bin/piece_calls.h"

static json_t *count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static int method_not_allowed(json_t **out_answer)
{
    *out_answer = json_pack("{s:s,s:s}", "error", "MethodNotAllowed", "message",
                            "the call does not know this method");
    return 405;
}

/* -- sweep --------------------------------------------------------------------------------------- */

json_t *fgw_store_sweep_json(struct fgw_storage *storage)
{
    struct fgw_storage_sweep_status status;
    fgw_storage_sweep_status(storage, &status);
    json_t *answer = json_pack(
        "{s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:o}", "running", status.running || status.wanted,
        "passes", count(status.passes), "holds", count(status.held), "ownerless",
        count(status.ownerless), "waiting", count(status.candidates), "freed", count(status.freed),
        "freed_total", count(status.freed_total), "limit", count(status.limit), "alarm",
        status.alarm, "grace_ms", count(status.grace_ms));
    (void)json_object_set_new(answer, "failed",
                              status.failed == FGW_OK ? json_null()
                                                      : json_string(fgw_err_text(status.failed)));
    return answer;
}

static int call_sweep(void *context, const struct fgw_admin_request *request, json_t **out_answer)
{
    struct fgw_storage *storage = context;
    bool post = strcmp(request->method, "POST") == 0;
    if (!post && strcmp(request->method, "GET") != 0) {
        return method_not_allowed(out_answer);
    }
    if (post) {
        if (json_is_true(json_object_get(request->body, "approve"))) {
            fgw_storage_sweep_approve(storage);
        }
        fgw_storage_sweep_start(storage);
    }
    *out_answer = fgw_store_sweep_json(storage);
    return post ? 202 : 200;
}

/* -- scrub --------------------------------------------------------------------------------------- */

static json_t *finding_json(const struct fgw_storage_scrub_finding *finding)
{
    char cid[FGW_CID_TEXT_SIZE] = "";
    if (finding->cid.bytes[0] != 0) {
        fgw_cid_text(&finding->cid, cid);
    }
    return json_pack("{s:s,s:s,s:o,s:o}", "what", finding->what, "cid", cid, "group",
                     count(finding->group), "offset", count(finding->offset));
}

json_t *fgw_store_scrub_json(struct fgw_storage *storage)
{
    struct fgw_storage_scrub_status *status = fgw_xcalloc(1, sizeof *status);
    fgw_storage_scrub_status(storage, status);
    json_t *findings = json_array();
    for (size_t i = 0; i < status->finding_count; i++) {
        (void)json_array_append_new(findings, finding_json(&status->findings[i]));
    }
    json_t *answer = json_pack(
        "{s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "running", status->running || status->wanted,
        "runs", count(status->runs), "blocks", count(status->blocks), "bytes", count(status->bytes),
        "held_bytes", count(status->held_bytes), "lists", count(status->blobs), "log_batches",
        count(status->log_batches), "damaged", count(status->damaged), "findings", findings);
    (void)json_object_set_new(answer, "failed",
                              status->failed == FGW_OK ? json_null()
                                                       : json_string(fgw_err_text(status->failed)));
    (void)json_object_set_new(answer, "failed_code", json_integer((json_int_t)status->failed));
    fgw_xfree(status);
    return answer;
}

static int start_scrub(struct fgw_storage *storage, const json_t *body, json_t **out_answer)
{
    json_int_t rate = json_integer_value(json_object_get(body, "bytes_per_s"));
    if (rate < 0) {
        *out_answer = json_pack("{s:s,s:s}", "error", "InvalidArgument", "message",
                                "bytes_per_s is a number of bytes");
        return 400;
    }
    if (!fgw_storage_scrub_start(storage, (uint64_t)rate)) {
        *out_answer = json_pack("{s:s,s:s}", "error", "Conflict", "message", "a scrub is running");
        return 409;
    }
    *out_answer = fgw_store_scrub_json(storage);
    return 202;
}

static int call_scrub(void *context, const struct fgw_admin_request *request, json_t **out_answer)
{
    struct fgw_storage *storage = context;
    if (strcmp(request->method, "POST") == 0) {
        return start_scrub(storage, request->body, out_answer);
    }
    if (strcmp(request->method, "DELETE") == 0) {
        fgw_storage_scrub_stop(storage);
    } else if (strcmp(request->method, "GET") != 0) {
        return method_not_allowed(out_answer);
    }
    *out_answer = fgw_store_scrub_json(storage);
    return 200;
}

void fgw_store_calls_init(struct fgw_admin_extra out_extras[FGW_STORE_CALLS],
                          struct fgw_storage *storage, struct fgw_piece_worker *pieces)
{
    out_extras[0] = (struct fgw_admin_extra){"sweep", call_sweep, storage};
    out_extras[1] = (struct fgw_admin_extra){"scrub", call_scrub, storage};
    out_extras[2] = fgw_piece_calls(pieces);
}
