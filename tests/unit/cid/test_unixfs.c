/* test_unixfs.c: exact bytes of file nodes, and what the decoder accepts and refuses. */
#include "cmocka_all.h"

#include "base/check.h"
#include "base/encode.h"
#include "cid/unixfs.h"

/* Root blocks of published files: 1 MiB + 1 of seed "chunk-v1-seed" (unixfs-v1-2025), 256 KiB + 1
 * of zeros (chunk 256 KiB). */
static const char SEED_ROOT[] =
    "122c0a24015512200268cb8e7373247d08ea6c0846700eb7b9c8eb58bfecbd921e4252e9e266ec98120018808040"
    "122a0a24015512204d7b3ef7300acf70c892d8327db8272f54434adbc61a4e130a563cb59a0d0f4712001801"
    "0a0c080218818040208080402001";
static const char ZERO_ROOT[] =
    "122c0a24015512208a39d2abd3999ab73c34db2476849cddf303ce389b35826850f9a700589b4a90120018808010"
    "122a0a24015512206e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d12001801"
    "0a0c080218818010208080102001";

static struct fgw_bytes from_hex(struct fgw_arena *arena, const char *hex)
{
    struct fgw_bytes text = fgw_bytes_str(hex);
    uint8_t *bytes = fgw_arena_alloc(arena, text.len / 2 + 1);
    assert_int_equal(fgw_hex_decode(text, bytes), FGW_OK);
    return fgw_bytes(bytes, text.len / 2);
}

static enum fgw_err decode_hex(const char *hex, struct fgw_unixfs_node *node)
{
    static struct fgw_arena arena;
    static bool ready;
    if (!ready) {
        fgw_arena_init(&arena, 0);
        ready = true;
    }
    struct fgw_bytes bytes = from_hex(&arena, hex);
    return fgw_unixfs_decode(&arena, bytes, node);
}

static void re_encode(const char *hex, const char *cid_text)
{
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    struct fgw_bytes block = from_hex(&arena, hex);
    struct fgw_unixfs_node node;
    assert_int_equal(fgw_unixfs_decode(&arena, block, &node), FGW_OK);
    assert_int_equal(node.type, FGW_UNIXFS_FILE);
    assert_int_equal(node.link_count, 2);
    assert_true(node.file_bytes == node.links[0].file_bytes + 1);
    assert_true(node.links[1].file_bytes == 1 && node.links[1].tree_bytes == 1);
    struct fgw_unixfs_encoder encoder;
    fgw_unixfs_encoder_init(&encoder);
    for (size_t i = 0; i < node.link_count; i++) {
        struct fgw_cid cid;
        assert_int_equal(fgw_cid_from_view(&node.links[i].cid, &cid), FGW_OK);
        assert_int_equal(fgw_unixfs_encoder_add(&encoder, &cid, node.links[i].file_bytes,
                                                node.links[i].tree_bytes),
                         FGW_OK);
    }
    struct fgw_bytes again = fgw_unixfs_encoder_finish(&encoder);
    assert_true(fgw_bytes_eq(again, block));
    struct fgw_cid cid = fgw_cid_of(FGW_CODEC_DAG_PB, again);
    char text[FGW_CID_TEXT_SIZE];
    fgw_cid_text(&cid, text);
    assert_string_equal(text, cid_text);
    fgw_unixfs_encoder_deinit(&encoder);
    fgw_arena_deinit(&arena);
}

static void published_root_blocks(void **state)
{
    (void)state;
    re_encode(SEED_ROOT, "bafybeigmix7t42i6jacydtquhet7srwvgpizfg7gjbq7627d35mjomtu64");
    re_encode(ZERO_ROOT, "bafybeigllfqgfpqydppr6cmv56g7ax4wyhruzswvcefv6j5kj77nzttfki");
}

static void small_nodes(void **state)
{
    (void)state;
    struct fgw_unixfs_node node;
    assert_int_equal(decode_hex("0a020801", &node), FGW_OK); /* empty directory */
    assert_int_equal(node.type, FGW_UNIXFS_DIRECTORY);
    assert_int_equal(decode_hex("0a0408021800", &node), FGW_OK); /* empty file */
    assert_int_equal(node.type, FGW_UNIXFS_FILE);
    assert_int_equal(decode_hex("0a110802120b68656c6c6f20776f726c64180b", &node), FGW_OK);
    assert_true(fgw_bytes_eq_str(node.data, "hello world") && node.file_bytes == 11);
    /* mode and mtime of newer tools are passed over */
    assert_int_equal(decode_hex("0a0e080218003803a40342040801"
                                "1001",
                                &node),
                     FGW_ERR_CORRUPT);
    assert_int_equal(decode_hex("0a0d0802180038a40342040801"
                                "1001",
                                &node),
                     FGW_OK);
}

#define CID_A "01551220b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
/* a link to CID_A named a or b, Tsize 1 */
#define LINK_A "122b0a24" CID_A "1201611801"
#define LINK_B "122b0a24" CID_A "1201621801"
/* one without a name */
#define LINK "122a0a24" CID_A "12001801"

static void data_first_and_packed_sizes(void **state)
{
    (void)state;
    struct fgw_unixfs_node node;
    assert_int_equal(decode_hex("0a06080218012001" LINK, &node), FGW_OK);
    assert_int_equal(node.link_count, 1);
    assert_int_equal(decode_hex(LINK "0a06080218012001", &node), FGW_OK);
    assert_int_equal(decode_hex(LINK LINK "0a080802180222020101", &node), FGW_OK);
    assert_true(node.links[0].file_bytes == 1 && node.links[1].file_bytes == 1);
}

static void directories(void **state)
{
    (void)state;
    struct fgw_unixfs_node node;
    assert_int_equal(decode_hex(LINK_A LINK_B "0a020801", &node), FGW_OK);
    assert_true(fgw_bytes_eq_str(node.links[1].name, "b"));
    assert_int_equal(decode_hex(LINK_B LINK_A "0a020801", &node), FGW_ERR_CORRUPT);
}

static void names_in_a_file_where_allowed(void **state)
{
    (void)state;
    struct fgw_arena arena;
    struct fgw_unixfs_node node;
    fgw_arena_init(&arena, 0);
    struct fgw_bytes block = from_hex(&arena, LINK_A LINK_B "0a080802180222020101");
    assert_int_equal(fgw_unixfs_decode(&arena, block, &node), FGW_ERR_CORRUPT);
    assert_int_equal(fgw_unixfs_decode_named(&arena, block, &node), FGW_OK);
    assert_int_equal(node.link_count, 2);
    assert_true(fgw_bytes_eq_str(node.links[1].name, "b") && node.file_bytes == 2);
    /* everything else stays refused */
    block = from_hex(&arena, LINK_A "0a06080218022001");
    assert_int_equal(fgw_unixfs_decode_named(&arena, block, &node), FGW_ERR_CORRUPT);
    fgw_arena_deinit(&arena);
}

static void refused(void **state)
{
    (void)state;
    static const char *const CASES[] = {
        "",                           /* no data */
        LINK,                         /* no data */
        "0a00",                       /* no type */
        "0a020806",                   /* no such type */
        "0a0208010a020801",           /* data twice */
        LINK "0a06080218012001" LINK, /* links on both sides */
        "0a03080118",                 /* cut inside */
        "0aff",                       /* length cut off */
        "0aff7f0801",                 /* length past the end */
        "0affffffffffffffff7f",       /* length of 2^63 - 1 */
        "0affffffffffffffffff01",     /* varint of ten bytes */
        "0a8200"
        "0801",       /* varint not minimal */
        "1a020801",   /* no such field of a node */
        "0801",       /* data as a varint */
        "0b0801",     /* a group */
        "0a02080f",   /* type far off */
        "0a030b0801", /* a group in the data */
        "0a030f0801", /* a reserved wire type in the data */
        "0a03000801", /* field number 0 */
        "1200"
        "0a020801", /* a link without a hash */
        "12041200"
        "1801"
        "0a020801", /* the same, with other fields */
        "12280a24" CID_A "1801"
        "1200"
        "0a06080218012001", /* fields out of order, lengths off */
        "122a0a24" CID_A "18011200"
        "0a06080218012001", /* fields out of order */
        "12050a03015512"
        "0a06080218012001",          /* the hash is no CID */
        LINK_A "0a06080218012001",   /* a name in a file */
        LINK "0a0408021801",         /* no block size for the link */
        LINK "0a080802180220012001", /* one too many */
        LINK "0a06080218022001",     /* filesize is not the sum */
        LINK "0a0e0802"
             "20ffffffffffffffff7f"
             "1201"
             "61", /* sum passes 2^63 */
    };
    for (size_t i = 0; i < FGW_COUNT_OF(CASES); i++) {
        struct fgw_unixfs_node node;
        if (decode_hex(CASES[i], &node) != FGW_ERR_CORRUPT) {
            fail_msg("accepted: %s", CASES[i]);
        }
    }
}

/* Every prefix of a good node is refused without reading past it. */
static void every_cut(void **state)
{
    (void)state;
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    struct fgw_bytes block = from_hex(&arena, SEED_ROOT);
    for (size_t len = 0; len < block.len; len++) {
        uint8_t *copy = fgw_xmalloc(len + 1);
        memcpy(copy, block.ptr, len);
        uint8_t *exact = fgw_xrealloc(copy, len > 0 ? len : 1);
        struct fgw_unixfs_node node;
        assert_int_equal(fgw_unixfs_decode(&arena, fgw_bytes(exact, len), &node), FGW_ERR_CORRUPT);
        fgw_xfree(exact);
    }
    fgw_arena_deinit(&arena);
}

static void too_much(void **state)
{
    (void)state;
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    uint8_t *big = fgw_xcalloc(1, FGW_UNIXFS_NODE_MAX + 1);
    struct fgw_unixfs_node node;
    assert_int_equal(fgw_unixfs_decode(&arena, fgw_bytes(big, FGW_UNIXFS_NODE_MAX + 1), &node),
                     FGW_ERR_TOO_LARGE);
    fgw_xfree(big);
    fgw_arena_deinit(&arena);
    struct fgw_unixfs_encoder encoder;
    fgw_unixfs_encoder_init(&encoder);
    struct fgw_cid cid = fgw_cid_of(FGW_CODEC_RAW, FGW_LIT("x"));
    uint64_t half = UINT64_C(1) << 61;
    assert_int_equal(fgw_unixfs_encoder_add(&encoder, &cid, half, half), FGW_OK);
    assert_int_equal(fgw_unixfs_encoder_add(&encoder, &cid, half + 1, 0), FGW_ERR_TOO_LARGE);
    assert_int_equal(fgw_unixfs_encoder_add(&encoder, &cid, 0, half + 1), FGW_ERR_TOO_LARGE);
    assert_int_equal(fgw_unixfs_encoder_add(&encoder, &cid, UINT64_MAX, 0), FGW_ERR_TOO_LARGE);
    for (size_t i = 1; i < FGW_UNIXFS_LINKS_MAX; i++) {
        assert_int_equal(fgw_unixfs_encoder_add(&encoder, &cid, i == 1 ? half : 0, 0), FGW_OK);
    }
    assert_int_equal(fgw_unixfs_encoder_add(&encoder, &cid, 0, 0), FGW_ERR_TOO_LARGE);
    assert_true(fgw_unixfs_encoder_finish(&encoder).len <= FGW_UNIXFS_NODE_MAX);
    fgw_unixfs_encoder_deinit(&encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_root_blocks),
        cmocka_unit_test(small_nodes),
        cmocka_unit_test(data_first_and_packed_sizes),
        cmocka_unit_test(directories),
        cmocka_unit_test(names_in_a_file_where_allowed),
        cmocka_unit_test(refused),
        cmocka_unit_test(every_cut),
        cmocka_unit_test(too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
