/* fuzz_unixfs.c: dag-pb nodes through the decoder. A file node that it accepts and that has only
 * our kind of links is encoded again: its links must decode to the same. */
#include "base/check.h"
#include "cid/unixfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool encode_again(const struct fgw_unixfs_node *node, struct fgw_unixfs_encoder *encoder)
{
    for (size_t i = 0; i < node->link_count; i++) {
        struct fgw_cid cid;
        if (fgw_cid_from_view(&node->links[i].cid, &cid) != FGW_OK ||
            fgw_unixfs_encoder_add(encoder, &cid, node->links[i].file_bytes,
                                   node->links[i].tree_bytes) != FGW_OK) {
            return false;
        }
    }
    return true;
}

static void compare(struct fgw_arena *arena, const struct fgw_unixfs_node *node,
                    struct fgw_bytes encoded)
{
    struct fgw_unixfs_node again;
    FGW_CHECK(fgw_unixfs_decode(arena, encoded, &again) == FGW_OK);
    FGW_CHECK(again.type == FGW_UNIXFS_FILE && again.link_count == node->link_count);
    FGW_CHECK(again.file_bytes == node->file_bytes - node->data.len);
    for (size_t i = 0; i < node->link_count; i++) {
        FGW_CHECK(fgw_bytes_eq(again.links[i].cid.digest, node->links[i].cid.digest));
        FGW_CHECK(again.links[i].file_bytes == node->links[i].file_bytes);
        FGW_CHECK(again.links[i].tree_bytes == node->links[i].tree_bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    struct fgw_unixfs_node node;
    if (fgw_unixfs_decode(&arena, fgw_bytes(data, size), &node) == FGW_OK &&
        node.type == FGW_UNIXFS_FILE) {
        struct fgw_unixfs_encoder encoder;
        fgw_unixfs_encoder_init(&encoder);
        if (encode_again(&node, &encoder)) {
            compare(&arena, &node, fgw_unixfs_encoder_finish(&encoder));
        }
        fgw_unixfs_encoder_deinit(&encoder);
    }
    fgw_arena_deinit(&arena);
    return 0;
}
