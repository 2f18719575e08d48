/* copy_source.h: the header x-amz-copy-source. Source: spec/s3-wire.md 5.53; public bug reports
 * B61. */
#ifndef FGW_S3_COPY_SOURCE_H
#define FGW_S3_COPY_SOURCE_H

#include "meta/meta.h"

struct fgw_s3_copy_source {
    struct fgw_bytes bucket;
    struct fgw_bytes key;
    struct fgw_version version;
};

/* "[/]bucket/key[?versionId=ID]", split at the first literal '?' and percent-decoded exactly once;
 * '+' stays. FGW_ERR_INVALID_ARGUMENT when it names no bucket and key or a broken version. */
enum fgw_err fgw_s3_copy_source_parse(struct fgw_arena *arena, struct fgw_bytes text,
                                      struct fgw_s3_copy_source *out_source) FGW_MUST_CHECK;

#endif
