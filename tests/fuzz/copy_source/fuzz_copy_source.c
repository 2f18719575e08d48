/* fuzz_copy_source.c: x-amz-copy-source. What is accepted names a bucket and a key, and says the
 * same when it is encoded and read again. */
#include "base/check.h"
#include "base/encode.h"
#include "s3/copy_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(struct fgw_arena *arena, const struct fgw_s3_copy_source *source)
{
    struct fgw_s3_copy_source again;
    struct fgw_buf text;
    fgw_buf_init(&text, 0);
    (void)fgw_uri_encode(&text, source->bucket, false);
    (void)fgw_buf_append_byte(&text, '/');
    (void)fgw_uri_encode(&text, source->key, true);
    FGW_CHECK(fgw_s3_copy_source_parse(arena, fgw_buf_bytes(&text), &again) == FGW_OK);
    FGW_CHECK(fgw_bytes_eq(again.bucket, source->bucket));
    FGW_CHECK(fgw_bytes_eq(again.key, source->key));
    fgw_buf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fgw_arena arena;
    struct fgw_s3_copy_source source;
    fgw_arena_init(&arena, 0);
    if (fgw_s3_copy_source_parse(&arena, fgw_bytes(data, size), &source) == FGW_OK) {
        FGW_CHECK(source.bucket.len > 0 && source.key.len > 0);
        FGW_CHECK(source.key.len <= FGW_META_KEY_MAX);
        FGW_CHECK(fgw_bytes_find_byte(source.bucket, '/') == SIZE_MAX);
        round_trip(&arena, &source);
    }
    fgw_arena_deinit(&arena);
    return 0;
}
