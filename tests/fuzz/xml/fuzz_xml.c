/* fuzz_xml.c: XML bodies. What is accepted is a tree within its bounds, and its texts, written and
 * read again, come back the same. */
#include "base/check.h"
#include "s3/xml_read.h"
#include "s3/xml_write.h"

enum { MAX_ELEMENTS = 2000, MAX_TREE_DEPTH = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Control bytes are written as references that XML 1.0 does not read. */
static bool readable(struct fgw_bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c < 0x20 && c != '\n' && c != '\t' && c != '\r') {
            return false;
        }
    }
    return true;
}

static void round_trip(struct fgw_arena *arena, struct fgw_bytes text)
{
    struct fgw_buf out;
    struct fgw_xml_node *root = NULL;
    fgw_buf_init(&out, 0);
    fgw_xml_begin(&out);
    fgw_xml_text(&out, "a", text);
    FGW_CHECK(fgw_xml_parse(arena, fgw_buf_bytes(&out), "a", 1, &root) == FGW_OK);
    FGW_CHECK(fgw_bytes_eq(root->text, text));
    fgw_buf_deinit(&out);
}

static size_t walk(struct fgw_arena *arena, const struct fgw_xml_node *node, unsigned depth)
{
    size_t count = 0;
    for (; node != NULL; node = node->next) {
        FGW_CHECK(depth < MAX_TREE_DEPTH);
        FGW_CHECK(node->first_child == NULL || node->text.len == 0);
        if (node->text.len > 0 && readable(node->text)) {
            round_trip(arena, node->text);
        }
        count += 1 + walk(arena, node->first_child, depth + 1);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fgw_arena arena;
    struct fgw_xml_node *root = NULL;
    fgw_arena_init(&arena, 0);
    if (fgw_xml_parse(&arena, fgw_bytes(data, size), "Delete", MAX_ELEMENTS, &root) == FGW_OK) {
        FGW_CHECK(walk(&arena, root, 0) <= MAX_ELEMENTS);
    }
    fgw_arena_deinit(&arena);
    return 0;
}
