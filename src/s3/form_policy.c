/* form_policy.c: see form_policy.h. */
#include "s3/form_policy.h"

#include <jansson.h>

#include "base/encode.h"
#include "base/timefmt.h"

struct check {
    const struct fgw_meta_pair *fields;
    size_t count;
    bool *covered; /* one a field */
    struct fgw_s3_form_limits *limits;
    struct fgw_error *error;
};

static enum fgw_err invalid(struct check *check, const char *why)
{
    return fgw_error_set(check->error, FGW_ERR_INVALID_POLICY_DOCUMENT, "Invalid Policy: %s", why);
}

static enum fgw_err denied(struct check *check, const char *why, struct fgw_bytes what)
{
    return fgw_error_set(check->error, FGW_ERR_ACCESS_DENIED, "Invalid according to Policy: %s%.*s",
                         why, FGW_FMT(fgw_bytes_sub(what, 0, 100)));
}

/* -- conditions ------------------------------------------------------------------------------- */

typedef bool comparison_fn(struct fgw_bytes value, struct fgw_bytes wanted);

/* Each field of that name, and an empty one when there is none, must compare; all are marked as
 * spoken of. */
static enum fgw_err check_fields(struct check *check, const char *name, const json_t *wanted,
                                 comparison_fn *compare)
{
    if (!json_is_string(wanted)) {
        return invalid(check, "a condition must be a string.");
    }
    struct fgw_bytes text = fgw_bytes(json_string_value(wanted), json_string_length(wanted));
    bool found = false;
    bool holds = true;
    for (size_t i = 0; i < check->count; i++) {
        if (fgw_bytes_ieq_str(check->fields[i].name, name)) {
            check->covered[i] = true;
            found = true;
            holds = holds && compare(check->fields[i].value, text);
        }
    }
    if (!found) {
        holds = compare(FGW_LIT(""), text);
    }
    return holds ? FGW_OK : denied(check, "Policy Condition failed: ", fgw_bytes_str(name));
}

static enum fgw_err check_pairs(struct check *check, json_t *condition)
{
    const char *name;
    json_t *wanted;
    if (json_object_size(condition) == 0) {
        return invalid(check, "a condition is empty.");
    }
    json_object_foreach(condition, name, wanted)
    {
        enum fgw_err err = check_fields(check, name, wanted, fgw_bytes_eq);
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

/* A whole number, or the digits of one. */
static bool bound(const json_t *value, uint64_t *out_bytes)
{
    if (json_is_string(value)) {
        return fgw_bytes_to_u64(fgw_bytes(json_string_value(value), json_string_length(value)),
                                out_bytes) == FGW_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *out_bytes = (uint64_t)json_integer_value(value);
    return true;
}

static enum fgw_err check_length_range(struct check *check, const json_t *condition)
{
    uint64_t min = 0;
    uint64_t max = 0;
    if (!bound(json_array_get(condition, 1), &min) || !bound(json_array_get(condition, 2), &max) ||
        min > max) {
        return invalid(check, "content-length-range needs two sizes in ascending order.");
    }
    struct fgw_s3_form_limits *limits = check->limits;
    limits->min_bytes = min > limits->min_bytes ? min : limits->min_bytes;
    limits->max_bytes = max < limits->max_bytes ? max : limits->max_bytes;
    return FGW_OK;
}

static enum fgw_err check_triple(struct check *check, const json_t *condition)
{
    const char *comparison = json_string_value(json_array_get(condition, 0));
    if (comparison == NULL || json_array_size(condition) != 3) {
        return invalid(check, "a condition must have an operator and two operands.");
    }
    if (fgw_bytes_ieq_str(fgw_bytes_str(comparison), "content-length-range")) {
        return check_length_range(check, condition);
    }
    const char *name = json_string_value(json_array_get(condition, 1));
    if (name == NULL || name[0] != '$') {
        return invalid(check, "the first operand of a condition must be a field, with a '$'.");
    }
    if (fgw_bytes_ieq_str(fgw_bytes_str(comparison), "eq")) {
        return check_fields(check, name + 1, json_array_get(condition, 2), fgw_bytes_eq);
    }
    if (fgw_bytes_ieq_str(fgw_bytes_str(comparison), "starts-with")) {
        return check_fields(check, name + 1, json_array_get(condition, 2), fgw_bytes_starts_with);
    }
    return invalid(check, "a condition has an unknown operator.");
}

static enum fgw_err check_conditions(struct check *check, const json_t *conditions)
{
    if (!json_is_array(conditions) || json_array_size(conditions) == 0) {
        return invalid(check, "there must be a list of conditions.");
    }
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        json_t *condition = json_array_get(conditions, i);
        enum fgw_err err = json_is_object(condition) ? check_pairs(check, condition)
                           : json_is_array(condition)
                               ? check_triple(check, condition)
                               : invalid(check, "a condition must be an object or a list.");
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

/* -- the rest --------------------------------------------------------------------------------- */

static enum fgw_err check_expiration(struct check *check, const json_t *expiration, int64_t now_ms)
{
    int64_t until_ms = 0;
    const char *text = json_string_value(expiration);
    if (text == NULL || fgw_time_parse_iso8601(fgw_bytes_str(text), &until_ms) != FGW_OK) {
        return invalid(check, "there must be an expiration in ISO 8601 form.");
    }
    return now_ms <= until_ms ? FGW_OK : denied(check, "Policy expired.", FGW_LIT(""));
}

static bool needs_no_condition(struct fgw_bytes name)
{
    static const char *const NAMES[] = {"policy", "signature", "x-amz-signature", "awsaccesskeyid",
                                        "file"};
    static const char PREFIX[] = "x-ignore-";
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (fgw_bytes_ieq_str(name, NAMES[i])) {
            return true;
        }
    }
    return fgw_bytes_ieq_str(fgw_bytes_sub(name, 0, sizeof PREFIX - 1), PREFIX);
}

static enum fgw_err check_covered(struct check *check)
{
    for (size_t i = 0; i < check->count; i++) {
        if (!check->covered[i] && !needs_no_condition(check->fields[i].name)) {
            return denied(check, "Extra input fields: ", check->fields[i].name);
        }
    }
    return FGW_OK;
}

static enum fgw_err check_document(struct check *check, const json_t *document, int64_t now_ms)
{
    if (!json_is_object(document)) {
        return invalid(check, "it must be a JSON object.");
    }
    enum fgw_err err = check_expiration(check, json_object_get(document, "expiration"), now_ms);
    if (err == FGW_OK) {
        err = check_conditions(check, json_object_get(document, "conditions"));
    }
    return err == FGW_OK ? check_covered(check) : err;
}

enum fgw_err fgw_s3_form_policy_check(struct fgw_arena *arena, struct fgw_bytes text,
                                      const struct fgw_meta_pair *fields, size_t count,
                                      int64_t now_ms, struct fgw_s3_form_limits *limits,
                                      struct fgw_error *error)
{
    struct fgw_s3_form_limits narrowed = *limits;
    struct check check = {.fields = fields,
                          .count = count,
                          .covered = fgw_arena_zalloc(arena, (count + 1) * sizeof(bool)),
                          .limits = &narrowed,
                          .error = error};
    uint8_t *decoded = fgw_arena_alloc(arena, text.len + 4);
    size_t len = 0;
    if (fgw_base64_decode(text, decoded, &len) != FGW_OK) {
        return invalid(&check, "it is not base64.");
    }
    json_error_t json_error;
    json_t *document = json_loadb((const char *)decoded, len, JSON_REJECT_DUPLICATES, &json_error);
    enum fgw_err err = document == NULL ? invalid(&check, "it is not JSON.")
                                        : check_document(&check, document, now_ms);
    json_decref(document);
    if (err == FGW_OK) {
        *limits = narrowed;
    }
    return err;
}
