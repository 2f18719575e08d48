/* engine_internal.h: the engine's own state, for the files of src/s3. */
#ifndef FGW_S3_ENGINE_INTERNAL_H
#define FGW_S3_ENGINE_INTERNAL_H

#include "base/digest.h"
#include "s3/engine.h"
#include "s3/request.h"

enum {
    FGW_S3_XML_MAX = 1024 * 1024,           /* XML bodies (spec/interface.md 8) */
    FGW_S3_XML_LARGE_MAX = 2 * 1024 * 1024, /* DeleteObjects, CompleteMultipartUpload */
    FGW_S3_LIST_MAX = 1000,                 /* entries of a list page */
    FGW_S3_HOST_ID_SIZE = 32
};

struct fgw_s3 {
    struct fgw_meta *meta;
    struct fgw_blobs *blobs;
    struct fgw_s3_quotas *quotas;
    const char *region;
    char **locations;
    size_t location_count;
    const char *const *domains;
    size_t domain_count;
    bool strict_aws;
    struct fgw_bytes root_access_key;
    struct fgw_bytes root_secret_key;
    char root_id[2 * FGW_SHA256_SIZE + 1];
    uint8_t token_key[FGW_SHA256_SIZE]; /* signs continuation tokens; the same on every proxy */
    char host_id[FGW_S3_HOST_ID_SIZE + 1];
    uint64_t max_put_bytes;
    uint64_t database_wait_ms;             /* UINT64_MAX: any time */
    struct fgw_sig_key_cache **key_caches; /* one a worker */
    unsigned workers;
    bool (*internal)(void *context, struct fgw_http_exchange *exchange);
    void *internal_context;
    void (*done)(void *context, const struct fgw_s3_done *done);
    void *done_context;
};

/* The region or one of the other accepted names. */
bool fgw_s3_location_known(const struct fgw_s3 *s3, struct fgw_bytes location);

#endif
