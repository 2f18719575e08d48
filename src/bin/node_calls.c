/* node_calls.c: see node_calls.h. */
#include "bin/node_calls.h"

#include <string.h>

#include "base/check.h"
#include "base/encode.h"

enum { HOLDS_A_CALL = 200, CURSOR_MAX = 4096 };

static int refused(enum fgw_err err, const struct fgw_error *error, json_t **out_answer)
{
    int status = err == FGW_ERR_NOT_FOUND ? 404 : err == FGW_ERR_CONFLICT ? 409 : 503;
    *out_answer = json_pack("{s:s,s:s}", "error", status == 503 ? "ServiceUnavailable" : "Refused",
                            "message", fgw_error_message(error));
    return status;
}

static int no_such_call(json_t **out_answer)
{
    *out_answer = json_pack("{s:s,s:s}", "error", "NotFound", "message", "no such call");
    return 404;
}

/* -- what there is ------------------------------------------------------------------------------- */

static json_t *parsed(struct fgw_buf *text)
{
    json_t *value = json_loadb((const char *)text->ptr, text->len, 0, NULL);
    FGW_CHECK(value != NULL);
    fgw_buf_deinit(text);
    return value;
}

void fgw_node_calls_describe(struct fgw_cluster *cluster, json_t *document)
{
    struct fgw_buf text;
    fgw_buf_init(&text, 0);
    fgw_cluster_json(cluster, &text);
    (void)json_object_set_new(document, "nodes", parsed(&text));
    (void)fgw_buf_append_byte(&text, '{');
    fgw_cluster_sets_json(cluster, &text);
    (void)fgw_buf_append_byte(&text, '}');
    json_t *sets = parsed(&text);
    (void)json_object_update(document, sets);
    json_decref(sets);
}

static int list(const struct fgw_node_calls *calls, json_t **out_answer)
{
    *out_answer = json_object();
    fgw_node_calls_describe(calls->cluster, *out_answer);
    return 200;
}

/* -- orders -------------------------------------------------------------------------------------- */

static int drain(const struct fgw_node_calls *calls, const char *name, const json_t *body,
                 json_t **out_answer)
{
    struct fgw_error error;
    bool cancel = json_is_true(json_object_get(body, "cancel"));
    fgw_error_init(&error);
    enum fgw_err err = fgw_cluster_drain(calls->cluster, name, cancel, &error);
    if (err != FGW_OK) {
        return refused(err, &error, out_answer);
    }
    *out_answer =
        json_pack("{s:s,s:s}", "node", name, "result",
                  cancel ? "takes part again" : "draining: fgw node list shows when it is drained");
    return 200;
}

static int remove_node(const struct fgw_node_calls *calls, const char *name, const json_t *body,
                       json_t **out_answer)
{
    struct fgw_error error;
    unsigned lost = 0;
    bool force = json_is_true(json_object_get(body, "force"));
    fgw_error_init(&error);
    enum fgw_err err = fgw_cluster_remove(calls->cluster, name, force, &lost, &error);
    if (err != FGW_OK) {
        return refused(err, &error, out_answer);
    }
    *out_answer = json_pack("{s:s,s:s,s:i}", "node", name, "result",
                            lost > 0 ? "removed; what only it had is lost" : "removed", "sets_lost",
                            (int)lost);
    return 200;
}

static int rebalance(const struct fgw_node_calls *calls, json_t **out_answer)
{
    struct fgw_error error;
    unsigned moves = 0;
    fgw_error_init(&error);
    enum fgw_err err = fgw_cluster_rebalance(calls->cluster, &moves, &error);
    if (err != FGW_OK) {
        return refused(err, &error, out_answer);
    }
    *out_answer = json_pack("{s:i,s:s}", "moves", (int)moves, "result",
                            moves == 0 ? "balanced as it is" : "sets move to emptier stores");
    return 200;
}

/* -- what the store has and the metadata does not ------------------------------------------------ */

struct page {
    const struct fgw_node_calls *calls;
    struct fgw_arena arena;
    struct fgw_buf cursor;
    json_t *unnamed;
    json_t *holds; /* all of them; NULL: not wanted */
    uint64_t looked;
};

static json_t *hold_json(struct page *page, const struct fgw_storage_hold_seen *hold)
{
    char cid[FGW_CID_TEXT_SIZE];
    struct fgw_bytes key = hold->owner.key;
    fgw_cid_text(&hold->root, cid);
    json_t *text = json_stringn((const char *)key.ptr, key.len);
    return json_pack(
        "{s:o,s:s,s:I,s:s,s:I}", "key", text == NULL ? json_string("?") : text, "cid", cid, "size",
        (json_int_t)hold->size_bytes, "owner",
        fgw_hex(&page->arena, fgw_bytes(hold->owner.owner_id, sizeof hold->owner.owner_id)),
        "extent", (json_int_t)hold->extent);
}

/* Whether the rows that name a hold mean this store's copy. */
static const char *where_named(struct fgw_cluster *cluster, const struct fgw_cluster_named *named)
{
    const struct fgw_placement *placement = fgw_cluster_placement(cluster);
    const char *where = !named->live ? "nowhere" : named->any_set ? "upload" : "elsewhere";
    struct fgw_placement_set *set = fgw_xmalloc(sizeof *set);
    bool here = false;
    for (unsigned i = 0; named->live && i < named->count && !here; i++) {
        bool known = placement->resolve(placement->context, named->sets[i], set) == FGW_OK;
        here = known && fgw_placement_set_is_here(set);
        where = here ? "here" : known ? where : "unknown set";
    }
    fgw_xfree(set);
    return where;
}

static enum fgw_err look_at_page(struct page *page, size_t *out_count, struct fgw_error *error)
{
    struct fgw_storage_hold_seen *holds;
    const struct fgw_node_calls *calls = page->calls;
    enum fgw_err err = fgw_storage_holds_next(calls->storage, &page->cursor, &page->arena,
                                              HOLDS_A_CALL, &holds, out_count);
    for (size_t i = 0; err == FGW_OK && i < *out_count; i++) {
        struct fgw_cluster_named named = {0};
        err = calls->named(calls->named_context, &holds[i].owner, &holds[i].root, &named, error);
        if (err == FGW_OK && !named.live) {
            (void)json_array_append_new(page->unnamed, hold_json(page, &holds[i]));
        }
        if (err == FGW_OK && page->holds != NULL) {
            json_t *hold = hold_json(page, &holds[i]);
            (void)json_object_set_new(hold, "named",
                                      json_string(where_named(calls->cluster, &named)));
            (void)json_array_append_new(page->holds, hold);
        }
        page->looked++;
    }
    return err;
}

/* The cursor goes out and comes back as hex; none: the end, or the beginning. */
static enum fgw_err take_cursor(struct page *page, const json_t *body)
{
    uint8_t raw[CURSOR_MAX];
    struct fgw_bytes hex = fgw_bytes_str(json_string_value(json_object_get(body, "cursor")));
    if (hex.len > 2 * sizeof raw || fgw_hex_decode(hex, raw) != FGW_OK) {
        return FGW_ERR_INVALID_ARGUMENT;
    }
    return fgw_buf_append(&page->cursor, fgw_bytes(raw, hex.len / 2));
}

static void add_seen(struct fgw_cluster *cluster, json_t *document)
{
    struct fgw_buf text;
    fgw_buf_init(&text, 0);
    fgw_cluster_seen_json(cluster, &text);
    json_t *seen = parsed(&text);
    (void)json_object_update(document, seen);
    json_decref(seen);
}

static int reconcile(const struct fgw_node_calls *calls, const json_t *body, json_t **out_answer)
{
    struct page page = {.calls = calls};
    struct fgw_error error;
    size_t count = 0;
    fgw_error_init(&error);
    if (calls->storage == NULL) {
        (void)fgw_error_set(&error, FGW_ERR_CONFLICT,
                            "Ask a storage node: this process has no "
                            "store.");
        return refused(FGW_ERR_CONFLICT, &error, out_answer);
    }
    fgw_arena_init(&page.arena, 0);
    fgw_buf_init(&page.cursor, 0);
    page.unnamed = json_array();
    page.holds = json_is_true(json_object_get(body, "all")) ? json_array() : NULL;
    enum fgw_err err = take_cursor(&page, body);
    if (err == FGW_OK) {
        err = look_at_page(&page, &count, &error);
    }
    if (err == FGW_OK) {
        const char *next = count == 0 ? "" : fgw_hex(&page.arena, fgw_buf_bytes(&page.cursor));
        *out_answer = json_pack("{s:O,s:I,s:s}", "unnamed", page.unnamed, "looked",
                                (json_int_t)page.looked, "cursor", next);
        if (page.holds != NULL) {
            (void)json_object_set(*out_answer, "holds", page.holds);
        }
        add_seen(calls->cluster, *out_answer);
    }
    json_decref(page.unnamed);
    json_decref(page.holds);
    fgw_buf_deinit(&page.cursor);
    fgw_arena_deinit(&page.arena);
    return err == FGW_OK ? 200 : refused(err, &error, out_answer);
}

/* -- which --------------------------------------------------------------------------------------- */

int fgw_node_call(void *context, const char *method, struct fgw_bytes name, struct fgw_bytes verb,
                  const json_t *body, json_t **out_answer)
{
    struct fgw_node_calls *calls = context;
    bool post = strcmp(method, "POST") == 0;
    if (name.len == 0) {
        const char *order = json_string_value(json_object_get(body, "do"));
        if (strcmp(method, "GET") == 0) {
            return list(calls, out_answer);
        }
        return post && order != NULL && strcmp(order, "rebalance") == 0
                   ? rebalance(calls, out_answer)
                   : no_such_call(out_answer);
    }
    char *who = fgw_xstrdup_bytes(name);
    int status = 404;
    if (post && fgw_bytes_eq_str(verb, "drain")) {
        status = drain(calls, who, body, out_answer);
    } else if (post && fgw_bytes_eq_str(verb, "remove")) {
        status = remove_node(calls, who, body, out_answer);
    } else if (post && fgw_bytes_eq_str(verb, "reconcile") && strcmp(who, "self") == 0) {
        status = reconcile(calls, body, out_answer);
    } else {
        status = no_such_call(out_answer);
    }
    fgw_xfree(who);
    return status;
}
