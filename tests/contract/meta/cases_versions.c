/* cases_versions.c: versions, markers, lists against models. */
#include "contract/meta/meta_contract.h"

#include "base/check.h"
#include "base/rng.h"

#define OPS (c->meta->ops)

static const struct fgw_version LATEST = {.kind = FGW_VERSION_LATEST};
static const struct fgw_version NULL_VERSION = {.kind = FGW_VERSION_NULL};

static enum fgw_err get(struct contract *c, const struct fgw_bucket *bucket, const char *key,
                        struct fgw_version version, struct fgw_object *out)
{
    return OPS->object_get(c->meta, &c->arena, bucket, fgw_bytes_str(key), version, out, &c->error);
}

static struct fgw_written remove_version(struct contract *c, const struct fgw_bucket *bucket,
                                  const char *key, struct fgw_version version)
{
    struct fgw_written written;
    MUST_ANSWER(OPS->object_delete(c->meta, &c->arena, bucket, fgw_bytes_str(key), version, NULL,
                                   &written, &c->error),
                FGW_OK);
    return written;
}

static struct fgw_version by_id(struct fgw_id id)
{
    return (struct fgw_version){FGW_VERSION_ID, id};
}

static bool has_etag(struct contract *c, const struct fgw_object *object, const char *body)
{
    return fgw_bytes_eq(object->etag, contract_etag(c, body));
}

void case_versions(struct contract *c)
{
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_ENABLED);
    struct fgw_written v[3];
    static const char *const BODIES[] = {"one", "two", "three"};
    struct fgw_object object;
    for (size_t i = 0; i < 3; i++) {
        MUST_ANSWER(contract_put(c, &bucket, "k", BODIES[i], NULL, &v[i]), FGW_OK);
        MUST(!v[i].is_null);
    }
    for (size_t i = 0; i < 3; i++) {
        MUST_ANSWER(get(c, &bucket, "k", by_id(v[i].version_id), &object), FGW_OK);
        MUST(has_etag(c, &object, BODIES[i]) && object.latest == (i == 2));
    }
    struct fgw_id unknown;
    fgw_id_random(&unknown);
    MUST_ANSWER(get(c, &bucket, "k", by_id(unknown), &object), FGW_ERR_NO_SUCH_VERSION);
    MUST_ANSWER(get(c, &bucket, "k", NULL_VERSION, &object), FGW_ERR_NO_SUCH_VERSION);
    /* a marker hides, its removal shows again */
    struct fgw_written marker = remove_version(c, &bucket, "k", LATEST);
    MUST(marker.delete_marker && !marker.is_null && !marker.removed_version);
    MUST_ANSWER(get(c, &bucket, "k", LATEST, &object), FGW_OK);
    MUST(object.delete_marker);
    MUST_ANSWER(get(c, &bucket, "k", by_id(v[2].version_id), &object), FGW_OK);
    struct fgw_written gone = remove_version(c, &bucket, "k", by_id(marker.version_id));
    MUST(gone.removed_version && gone.delete_marker);
    MUST_ANSWER(get(c, &bucket, "k", LATEST, &object), FGW_OK);
    MUST(has_etag(c, &object, "three"));
    /* the middle one, then the newest: the oldest is promoted; repeats succeed */
    for (int i = 0; i < 2; i++) {
        gone = remove_version(c, &bucket, "k", by_id(v[1].version_id));
        MUST(gone.removed_version == (i == 0));
    }
    (void)remove_version(c, &bucket, "k", by_id(v[2].version_id));
    MUST_ANSWER(get(c, &bucket, "k", LATEST, &object), FGW_OK);
    MUST(has_etag(c, &object, "one") && fgw_id_eq(&object.version_id, &v[0].version_id));
    (void)remove_version(c, &bucket, "k", by_id(v[0].version_id));
    MUST_ANSWER(get(c, &bucket, "k", LATEST, &object), FGW_ERR_NO_SUCH_KEY);
    MUST_ANSWER(OPS->bucket_delete(c->meta, &c->arena, &bucket, &c->error), FGW_OK);
}

static void set_versioning(struct contract *c, struct fgw_bucket *bucket, enum fgw_versioning to)
{
    bucket->versioning = to;
    MUST_ANSWER(OPS->bucket_update(c->meta, &c->arena, bucket, &c->error), FGW_OK);
    MUST_ANSWER(OPS->bucket_get(c->meta, &c->arena, bucket->name, true, bucket, &c->error), FGW_OK);
}

void case_null_versions(struct contract *c)
{
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct fgw_object object;
    struct fgw_written v1;
    MUST_ANSWER(contract_put(c, &bucket, "k", "before", NULL, NULL), FGW_OK);
    set_versioning(c, &bucket, FGW_VERSIONING_ENABLED);
    MUST_ANSWER(contract_put(c, &bucket, "k", "v1", NULL, &v1), FGW_OK);
    MUST_ANSWER(get(c, &bucket, "k", NULL_VERSION, &object), FGW_OK);
    MUST(has_etag(c, &object, "before") && object.is_null && !object.latest);
    /* suspended: the null version is replaced, the others stay */
    set_versioning(c, &bucket, FGW_VERSIONING_SUSPENDED);
    MUST_ANSWER(contract_put(c, &bucket, "k", "null2", NULL, NULL), FGW_OK);
    MUST_ANSWER(contract_put(c, &bucket, "k", "null3", NULL, NULL), FGW_OK);
    MUST_ANSWER(get(c, &bucket, "k", NULL_VERSION, &object), FGW_OK);
    MUST(has_etag(c, &object, "null3") && object.latest);
    MUST_ANSWER(get(c, &bucket, "k", by_id(v1.version_id), &object), FGW_OK);
    struct fgw_list_query query = {.max = 100};
    struct fgw_object_list list;
    MUST_ANSWER(OPS->version_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
    MUST(list.count == 2 && list.entries[0].object.is_null && !list.entries[1].object.is_null);
    /* a null marker takes the null version's place */
    struct fgw_written marker = remove_version(c, &bucket, "k", LATEST);
    MUST(marker.delete_marker && marker.is_null);
    MUST_ANSWER(OPS->version_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
    MUST(list.count == 2 && list.entries[0].object.delete_marker);
    /* enabled again: a new version on top, the null marker goes below and can be removed there */
    set_versioning(c, &bucket, FGW_VERSIONING_ENABLED);
    MUST_ANSWER(contract_put(c, &bucket, "k", "v2", NULL, NULL), FGW_OK);
    MUST_ANSWER(get(c, &bucket, "k", NULL_VERSION, &object), FGW_OK);
    MUST(object.delete_marker);
    struct fgw_written gone = remove_version(c, &bucket, "k", NULL_VERSION);
    MUST(gone.removed_version && gone.delete_marker);
    MUST_ANSWER(get(c, &bucket, "k", NULL_VERSION, &object), FGW_ERR_NO_SUCH_VERSION);
    MUST_ANSWER(OPS->version_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
    MUST(list.count == 2);
}

void case_delete_markers_in_lists(struct contract *c)
{
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_ENABLED);
    static const char *const KEYS[] = {"a", "d/1", "d/2", "e/1", "z"};
    for (size_t i = 0; i < FGW_COUNT_OF(KEYS); i++) {
        MUST_ANSWER(contract_put(c, &bucket, KEYS[i], "x", NULL, NULL), FGW_OK);
    }
    (void)remove_version(c, &bucket, "a", LATEST);
    (void)remove_version(c, &bucket, "d/1", LATEST);
    (void)remove_version(c, &bucket, "d/2", LATEST);
    (void)remove_version(c, &bucket, "e/1", LATEST);
    MUST_ANSWER(contract_put(c, &bucket, "e/2", "x", NULL, NULL), FGW_OK);
    struct fgw_list_query query = {.delimiter = FGW_LIT("/"), .max = 100};
    struct fgw_object_list list;
    MUST_ANSWER(OPS->object_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
    MUST(list.count == 2 && list.entries[0].is_prefix);
    MUST(fgw_bytes_eq_str(list.entries[0].prefix, "e/"));
    MUST(fgw_bytes_eq_str(list.entries[1].object.key, "z"));
    MUST_ANSWER(OPS->version_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
    /* a (marker and version), d/, e/, z */
    MUST(list.count == 5);
}

static struct fgw_version name_of(const struct fgw_object *object)
{
    return object->is_null ? NULL_VERSION : by_id(object->version_id);
}

static void empty_by_pages(struct contract *c, const struct fgw_bucket *bucket, unsigned max,
                           size_t expected)
{
    struct fgw_list_query query = {.max = max};
    struct fgw_object_list list = {.truncated = true};
    size_t seen = 0;
    while (list.truncated) {
        MUST_ANSWER(OPS->version_list(c->meta, &c->arena, bucket, &query, &list, &c->error), FGW_OK);
        MUST(list.count > 0);
        const struct fgw_object *last = &list.entries[list.count - 1].object;
        query.after = last->key;
        query.has_after_version = true;
        query.after_version = name_of(last);
        for (size_t i = 0; i < list.count; i++) {
            (void)remove_version(c, bucket, "k", name_of(&list.entries[i].object));
        }
        seen += list.count;
    }
    MUST(seen == expected);
}

/* A client that empties a bucket deletes each page before it asks for the next: no version may be
 * left out because its marker is gone, be it the null version (the third of five). */
void case_deleting_while_paging(struct contract *c)
{
    for (unsigned max = 1; max <= 5; max++) {
        struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_ENABLED);
        for (size_t i = 0; i < 5; i++) {
            set_versioning(c, &bucket, i == 2 ? FGW_VERSIONING_SUSPENDED : FGW_VERSIONING_ENABLED);
            MUST_ANSWER(contract_put(c, &bucket, "k", "x", NULL, NULL), FGW_OK);
        }
        empty_by_pages(c, &bucket, max, 5);
        MUST_ANSWER(OPS->bucket_delete(c->meta, &c->arena, &bucket, &c->error), FGW_OK);
    }
}

/* -- lists against a model ---------------------------------------------------------------------- */

enum { MODEL_KEYS = 120 };

struct model {
    char keys[MODEL_KEYS][12];
    unsigned versions[MODEL_KEYS]; /* 0 = absent */
    size_t count;
};

static int compare_keys(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void make_model(struct model *model)
{
    static const char LETTERS[] = "ab/c-";
    memset(model, 0, sizeof *model);
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        size_t len = 1 + (size_t)fgw_rng_below(7);
        for (size_t j = 0; j < len; j++) {
            model->keys[i][j] = LETTERS[fgw_rng_below(5)];
        }
    }
    qsort(model->keys, MODEL_KEYS, sizeof model->keys[0], compare_keys);
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        if (model->count == 0 || strcmp(model->keys[model->count - 1], model->keys[i]) != 0) {
            memmove(model->keys[model->count++], model->keys[i], sizeof model->keys[i]);
        }
    }
}

/* All names of a list with prefix and delimiter, each once. */
static size_t model_names(const struct model *model, const char *prefix, const char *delimiter,
                          char out[MODEL_KEYS][12])
{
    size_t count = 0;
    for (size_t i = 0; i < model->count; i++) {
        const char *key = model->keys[i];
        if (strncmp(key, prefix, strlen(prefix)) != 0) {
            continue;
        }
        char name[12];
        (void)snprintf(name, sizeof name, "%s", key);
        char *hit = delimiter[0] == '\0' ? NULL : strstr(name + strlen(prefix), delimiter);
        if (hit != NULL) {
            hit[strlen(delimiter)] = '\0';
        }
        if (count == 0 || strcmp(out[count - 1], name) != 0) {
            memcpy(out[count++], name, sizeof name);
        }
    }
    return count;
}

static void walk(struct contract *c, const struct fgw_bucket *bucket, const struct model *model,
                 const char *prefix, const char *delimiter)
{
    static char want[MODEL_KEYS][12];
    size_t total = model_names(model, prefix, delimiter, want);
    unsigned max = 1 + (unsigned)fgw_rng_below(9);
    struct fgw_list_query query = {.prefix = fgw_bytes_str(prefix),
                                   .delimiter = fgw_bytes_str(delimiter), .max = max};
    struct fgw_object_list list = {.truncated = true};
    size_t seen = 0;
    while (list.truncated) {
        MUST_ANSWER(OPS->object_list(c->meta, &c->arena, bucket, &query, &list, &c->error), FGW_OK);
        MUST(list.count <= max && (!list.truncated || list.count == max));
        for (size_t i = 0; i < list.count; i++) {
            const struct fgw_list_entry *entry = &list.entries[i];
            struct fgw_bytes name = entry->is_prefix ? entry->prefix : entry->object.key;
            MUST(seen < total && fgw_bytes_eq_str(name, want[seen]));
            query.after = name;
            seen++;
        }
    }
    MUST(seen == total);
}

void case_lists_match_model(struct contract *c)
{
    static struct model model;
    static const char *const PREFIXES[] = {"", "a", "a/", "b", "/", "c-", "zz"};
    static const char *const DELIMITERS[] = {"", "/", "-", "b/"};
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    make_model(&model);
    for (size_t i = 0; i < model.count; i++) {
        MUST_ANSWER(contract_put(c, &bucket, model.keys[i], model.keys[i], NULL, NULL), FGW_OK);
    }
    for (size_t p = 0; p < FGW_COUNT_OF(PREFIXES); p++) {
        for (size_t d = 0; d < FGW_COUNT_OF(DELIMITERS); d++) {
            walk(c, &bucket, &model, PREFIXES[p], DELIMITERS[d]);
        }
    }
}

/* Pages of versions of every size: each version once, keys ascending, newest first, one latest. */
void case_version_pages_match_model(struct contract *c)
{
    static struct model model;
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_ENABLED);
    size_t total = 0;
    make_model(&model);
    model.count = model.count > 25 ? 25 : model.count;
    for (size_t i = 0; i < model.count; i++) {
        model.versions[i] = 1 + (unsigned)fgw_rng_below(4);
        for (unsigned v = 0; v < model.versions[i]; v++) {
            if (v > 0 && fgw_rng_below(4) == 0) {
                (void)remove_version(c, &bucket, model.keys[i], LATEST);
            } else {
                MUST_ANSWER(contract_put(c, &bucket, model.keys[i], "x", NULL, NULL), FGW_OK);
            }
            total++;
        }
    }
    for (unsigned max = 1; max <= 9; max++) {
        struct fgw_list_query query = {.max = max};
        struct fgw_object_list list = {.truncated = true};
        size_t seen = 0;
        size_t key_at = 0;
        unsigned of_key = 0;
        struct fgw_id before = {{0}};
        while (list.truncated) {
            MUST_ANSWER(OPS->version_list(c->meta, &c->arena, &bucket, &query, &list, &c->error),
                        FGW_OK);
            for (size_t i = 0; i < list.count; i++) {
                const struct fgw_object *object = &list.entries[i].object;
                if (of_key == model.versions[key_at]) {
                    key_at++;
                    of_key = 0;
                }
                MUST(fgw_bytes_eq_str(object->key, model.keys[key_at]));
                MUST(object->latest == (of_key == 0));
                MUST(of_key == 0 || memcmp(&object->version_id, &before, sizeof before) < 0);
                before = object->version_id;
                of_key++;
                seen++;
                query.after = object->key;
                query.has_after_version = true;
                query.after_version = by_id(object->version_id);
            }
        }
        MUST(seen == total);
    }
}
