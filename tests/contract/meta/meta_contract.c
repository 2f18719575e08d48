/* meta_contract.c: the list of cases and what they share. See meta_contract.h. */
#include "contract/meta/meta_contract.h"

#include "base/check.h"
#include "base/digest.h"
#include "base/encode.h"

static const struct {
    const char *name;
    contract_case *run;
} CASES[] = {
    {"buckets", case_buckets},
    {"bucket list pages", case_bucket_list_pages},
    {"objects", case_objects},
    {"odd keys", case_odd_keys},
    {"conditions", case_conditions},
    {"one winner", case_one_winner},
    {"counter", case_counter},
    {"update object", case_update_object},
    {"versions", case_versions},
    {"null versions", case_null_versions},
    {"delete markers in lists", case_delete_markers_in_lists},
    {"deleting while paging", case_deleting_while_paging},
    {"lists match a model", case_lists_match_model},
    {"version pages match a model", case_version_pages_match_model},
    {"multipart", case_multipart},
    {"complete once", case_complete_once},
    {"upload list", case_upload_list},
    {"identities", case_identities},
    {"delete bucket race", case_delete_bucket_race},
    {"blob live", case_blob_live},
};

unsigned meta_contract_run(struct fgw_meta *meta, struct fgw_blobs *blobs, const char *only)
{
    struct contract c = {.meta = meta, .blobs = blobs};
    unsigned run = 0;
    fgw_arena_init(&c.arena, 64 * 1024);
    for (size_t i = 0; i < FGW_COUNT_OF(CASES); i++) {
        if (only != NULL && strstr(CASES[i].name, only) == NULL) {
            continue;
        }
        (void)fprintf(stderr, "[ RUN      ] %s\n", CASES[i].name);
        fgw_error_init(&c.error);
        CASES[i].run(&c);
        (void)fprintf(stderr, "[       OK ] %s\n", CASES[i].name);
        fgw_arena_reset(&c.arena);
        run++;
    }
    fgw_arena_deinit(&c.arena);
    return run;
}

struct fgw_bucket contract_bucket(struct contract *c, enum fgw_versioning versioning)
{
    struct fgw_bucket made;
    struct fgw_id unique;
    char hex[33];
    fgw_id_random(&unique);
    fgw_id_hex(&unique, hex);
    struct fgw_bucket wanted = {
        .name = fgw_bytes_str(fgw_arena_printf(&c->arena, "b%u-%.12s", c->next_bucket++, hex)),
        .owner_id = FGW_LIT("owner-of-contract"),
        .owner_name = FGW_LIT("owner"),
        .region = FGW_LIT("us-east-1"),
        .versioning = versioning};
    MUST_ANSWER(c->meta->ops->bucket_create(c->meta, &c->arena, &wanted, &made, &c->error), FGW_OK);
    return made;
}

bool contract_loses_answers;

bool contract_answered(enum fgw_err got, enum fgw_err wanted)
{
    bool unknown = contract_loses_answers && wanted != FGW_OK && got == FGW_ERR_UNKNOWN_OUTCOME;
    return got == wanted || unknown;
}

struct fgw_bytes contract_etag(struct contract *c, const char *body)
{
    uint8_t md5[FGW_MD5_SIZE];
    fgw_digest_once(FGW_DIGEST_MD5, fgw_bytes_str(body), md5);
    return fgw_bytes_str(fgw_hex(&c->arena, fgw_bytes(md5, sizeof md5)));
}

void contract_stage(struct contract *c, const struct fgw_bucket *bucket, struct fgw_bytes key,
                    const struct fgw_id *owner_id, uint64_t extent, const char *body,
                    struct fgw_blob_staged *out)
{
    struct fgw_storage_owner owner = {.key = key};
    struct fgw_blob_stage *stage;
    memcpy(owner.bucket_id, bucket->id.bytes, sizeof owner.bucket_id);
    memcpy(owner.owner_id, owner_id->bytes, sizeof owner.owner_id);
    struct fgw_blob_stage_options options = {
        .arena = &c->arena, .owner = &owner, .extent_number = extent, .size_hint = strlen(body)};
    MUST_ANSWER(fgw_blob_stage_begin(c->blobs, &options, &stage, &c->error), FGW_OK);
    if (body[0] != '\0') {
        MUST_ANSWER(fgw_blob_stage_write(stage, fgw_bytes_str(body)), FGW_OK);
    }
    MUST_ANSWER(fgw_blob_stage_finish(stage, out), FGW_OK);
}

enum fgw_err contract_put(struct contract *c, const struct fgw_bucket *bucket, const char *key,
                          const char *body, const struct fgw_conditions *conditions,
                          struct fgw_written *out)
{
    struct fgw_blob_staged *staged = fgw_arena_zalloc(&c->arena, sizeof *staged);
    struct fgw_put put = {.bucket = bucket, .staged = staged, .staged_count = 1};
    struct fgw_written ignored;
    put.object.key = fgw_arena_copy(&c->arena, fgw_bytes_str(key));
    put.object.size = strlen(body);
    put.object.etag = contract_etag(c, body);
    fgw_id_random(&put.object.owner_id);
    if (conditions != NULL) {
        put.conditions = *conditions;
    }
    contract_stage(c, bucket, put.object.key, &put.object.owner_id, 0, body, staged);
    return c->meta->ops->object_put(c->meta, &c->arena, &put, out == NULL ? &ignored : out,
                                    &c->error);
}
