/* documents.c: see documents.h. */
#include "s3/documents.h"

#include "s3/answer.h"
#include "s3/bucket_update.h"

struct change {
    const char *name;
    struct fgw_bytes document;
};

struct fgw_bytes fgw_s3_document(const struct fgw_bucket *bucket, const char *name)
{
    for (size_t i = 0; i < bucket->document_count; i++) {
        if (fgw_bytes_eq_str(bucket->documents[i].name, name)) {
            return bucket->documents[i].value;
        }
    }
    return (struct fgw_bytes){NULL, 0};
}

static enum fgw_err apply(struct fgw_s3_request *request, struct fgw_bucket *bucket, void *context)
{
    const struct change *change = context;
    struct fgw_meta_pair *documents =
        fgw_arena_alloc(request->arena, (bucket->document_count + 1) * sizeof *documents);
    size_t count = 0;
    for (size_t i = 0; i < bucket->document_count; i++) {
        if (!fgw_bytes_eq_str(bucket->documents[i].name, change->name)) {
            documents[count++] = bucket->documents[i];
        }
    }
    if (change->document.ptr != NULL) {
        documents[count++] = (struct fgw_meta_pair){fgw_bytes_str(change->name), change->document};
    }
    bucket->documents = documents;
    bucket->document_count = count;
    return FGW_OK;
}

enum fgw_err fgw_s3_set_document(struct fgw_s3_request *request, const char *static_name,
                                 struct fgw_bytes document)
{
    struct change change = {static_name, document};
    if (document.ptr == NULL && fgw_s3_document(&request->bucket, static_name).ptr == NULL) {
        return FGW_OK;
    }
    return fgw_s3_bucket_update(request, apply, &change);
}

enum fgw_err fgw_s3_answer_document(struct fgw_s3_request *request, const char *name,
                                    enum fgw_err otherwise)
{
    struct fgw_bytes document = fgw_s3_document(&request->bucket, name);
    if (document.ptr == NULL) {
        return fgw_error_set(&request->error, otherwise, NULL);
    }
    fgw_s3_start(request, 200, (int64_t)document.len);
    fgw_http_response_header(request->exchange, "Content-Type", FGW_LIT("application/xml"));
    enum fgw_err err = fgw_http_response_write(request->exchange, document);
    return err == FGW_OK ? fgw_s3_end(request) : err;
}
