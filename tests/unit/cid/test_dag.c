/* test_dag.c: root CIDs of published files, shape and completeness of the tree. The two 1 GiB files
 * run with FGW_TEST_SLOW=1. */
#include "cmocka_all.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/list.h"
#include "cid/dag.h"
#include "cid/unixfs.h"

static const struct fgw_dag_profile KUBO_256K = {262144, 174};

/* -- data ------------------------------------------------------------------------------------ */

/* Zeros, or with a seed the ChaCha20 key stream: key sha256(seed), zero nonce, counter 0. */
struct source {
    EVP_CIPHER_CTX *cipher; /* NULL: zeros */
};

static void source_open(struct source *source, const char *seed)
{
    source->cipher = NULL;
    if (seed != NULL) {
        uint8_t key[FGW_SHA256_SIZE];
        uint8_t iv[16] = {0};
        fgw_sha256(fgw_bytes_str(seed), key);
        source->cipher = EVP_CIPHER_CTX_new();
        assert_int_equal(EVP_EncryptInit_ex(source->cipher, EVP_chacha20(), NULL, key, iv), 1);
    }
}

static void source_read(struct source *source, uint8_t *out, size_t len)
{
    memset(out, 0, len);
    if (source->cipher != NULL) {
        int written = 0;
        assert_int_equal(EVP_EncryptUpdate(source->cipher, out, &written, out, (int)len), 1);
        assert_int_equal(written, (int)len);
    }
}

static void source_close(struct source *source)
{
    EVP_CIPHER_CTX_free(source->cipher);
}

/* -- building -------------------------------------------------------------------------------- */

struct emitted {
    size_t count;
    uint64_t bytes;
    struct fgw_cid last;
    size_t fail_at; /* 1-based; 0: never */
};

static enum fgw_err count_node(void *context, const struct fgw_cid *cid, struct fgw_bytes node)
{
    struct emitted *emitted = context;
    struct fgw_cid_view view;
    assert_int_equal(fgw_cid_decode(fgw_cid_bytes(cid), &view), FGW_OK);
    assert_int_equal(fgw_cid_verify(&view, node), FGW_OK);
    emitted->count++;
    emitted->bytes += node.len;
    emitted->last = *cid;
    return emitted->count == emitted->fail_at ? FGW_ERR_NOSPACE : FGW_OK;
}

static struct fgw_dag_root build_file(const struct fgw_dag_profile *profile, const char *seed,
                                      uint64_t size, struct emitted *emitted)
{
    struct source source;
    source_open(&source, seed);
    uint8_t *chunk = fgw_xmalloc((size_t)profile->chunk_bytes);
    struct fgw_dag_builder *builder = fgw_dag_builder_new(profile, count_node, emitted);
    for (uint64_t left = size; left > 0;) {
        size_t len = (size_t)(left < profile->chunk_bytes ? left : profile->chunk_bytes);
        source_read(&source, chunk, len);
        struct fgw_cid leaf = fgw_cid_of(FGW_CODEC_RAW, fgw_bytes(chunk, len));
        assert_int_equal(fgw_dag_builder_add(builder, &leaf, len), FGW_OK);
        left -= len;
    }
    struct fgw_dag_root root;
    assert_int_equal(fgw_dag_builder_finish(builder, &root), FGW_OK);
    fgw_dag_builder_free(builder);
    fgw_xfree(chunk);
    source_close(&source);
    assert_true(root.file_bytes == size && root.tree_bytes == size + emitted->bytes);
    assert_true(root.canonical);
    return root;
}

static void assert_root(const struct fgw_dag_root *root, const char *expected)
{
    char text[FGW_CID_TEXT_SIZE];
    fgw_cid_text(&root->cid, text);
    assert_string_equal(text, expected);
}

struct vector {
    const char *seed;
    uint64_t size;
    const struct fgw_dag_profile *profile;
    const char *root;
};

static void check_vectors(const struct vector *vectors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct emitted emitted = {0};
        struct fgw_dag_root root =
            build_file(vectors[i].profile, vectors[i].seed, vectors[i].size, &emitted);
        assert_root(&root, vectors[i].root);
        assert_int_equal(emitted.count == 0, root.leaf_count <= 1);
        if (emitted.count > 0) {
            assert_true(fgw_cid_eq(&emitted.last, &root.cid));
        }
    }
}

/* -- tests ----------------------------------------------------------------------------------- */

static void published_roots(void **state)
{
    (void)state;
    static const struct vector VECTORS[] = {
        {NULL, 0, &fgw_dag_unixfs_v1_2025,
         "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"},
        {"chunk-v1-seed", 1048576, &fgw_dag_unixfs_v1_2025,
         "bafkreiacndfy443ter6qr2tmbbdhadvxxheowwf75s6zehscklu6ezxmta"},
        {"chunk-v1-seed", 1048577, &fgw_dag_unixfs_v1_2025,
         "bafybeigmix7t42i6jacydtquhet7srwvgpizfg7gjbq7627d35mjomtu64"},
        {NULL, 1048576, &fgw_dag_unixfs_v1_2025,
         "bafkreibq4fevl27rgurgnxbp7adh42aqiyd6ouflxhj3gzmcxcxzbh6lla"},
        {NULL, 1048577, &fgw_dag_unixfs_v1_2025,
         "bafybeihd4yzq7n5umhjngdum4r6k2to7egxfkf2jz6thvwzf6djus22cmq"},
        {NULL, 262144, &KUBO_256K, "bafkreiekhhjkxu4ztk3tyng3er3ijhg56mb44oe3gwbgquhzu4afrg2ksa"},
        {NULL, 262145, &KUBO_256K, "bafybeigllfqgfpqydppr6cmv56g7ax4wyhruzswvcefv6j5kj77nzttfki"},
        {NULL, 1048576, &KUBO_256K, "bafybeiggzq4ryi7hscq5hzvzcnk4urnxt3asp37dhgvnjilf7exskximla"},
        {NULL, UINT64_C(174) * 262144, &KUBO_256K,
         "bafybeibxsa3ioclowpaq7b6gxl65gzqneopfr3fnhedak6sqr4bjz5lnyq"},
        {NULL, UINT64_C(174) * 262144 + 1, &KUBO_256K,
         "bafybeihqwzd3o6q6v3pmwhzjy22vokhr767burokmqemg63hptx2nqd7ym"},
        {"v0-seed", UINT64_C(174) * 262144, &KUBO_256K,
         "bafybeidajp2ewrtxcagm2u3qstbk2kw5srzbu7g7oraqepajpgumviz3z4"},
        {"v0-seed", UINT64_C(174) * 262144 + 1, &KUBO_256K,
         "bafybeifr472xiwfk53w5s7bayijk3lq2go6ocqqcfch6ygy5qwza5hkdl4"},
    };
    check_vectors(VECTORS, FGW_COUNT_OF(VECTORS));
}

static void published_roots_1gib(void **state)
{
    (void)state;
    static const struct vector VECTORS[] = {
        {"v1-2025-seed", UINT64_C(1) << 30, &fgw_dag_unixfs_v1_2025,
         "bafybeihmf37wcuvtx4hpu7he5zl5qaf2ineo2lqlfrapokkm5zzw7zyhvm"},
        {"v1-2025-seed", (UINT64_C(1) << 30) + 1, &fgw_dag_unixfs_v1_2025,
         "bafybeibdsi225ugbkmpbdohnxioyab6jsqrmkts3twhpvfnzp77xtzpyhe"},
    };
    check_vectors(VECTORS, FGW_COUNT_OF(VECTORS));
}

/* Leaves cut from `text` by the sizes. */
static struct fgw_dag_root build_text(const struct fgw_dag_profile *profile, const char *text,
                                      const size_t *sizes, size_t count, struct emitted *emitted)
{
    struct fgw_bytes rest = fgw_bytes_str(text);
    struct fgw_dag_builder *builder = fgw_dag_builder_new(profile, count_node, emitted);
    for (size_t i = 0; i < count; i++) {
        struct fgw_bytes leaf = fgw_bytes_sub(rest, 0, sizes[i]);
        rest = fgw_bytes_sub(rest, leaf.len, SIZE_MAX);
        struct fgw_cid cid = fgw_cid_of(FGW_CODEC_RAW, leaf);
        assert_int_equal(fgw_dag_builder_add(builder, &cid, leaf.len), FGW_OK);
    }
    assert_int_equal(rest.len, 0);
    struct fgw_dag_root root;
    assert_int_equal(fgw_dag_builder_finish(builder, &root), FGW_OK);
    fgw_dag_builder_free(builder);
    return root;
}

static void small_deep_trees(void **state)
{
    (void)state;
    static const size_t ONES[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const size_t TWOS[13] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    struct emitted emitted = {0};
    struct fgw_dag_root root =
        build_text(&(struct fgw_dag_profile){1, 3}, "abcdefghij", ONES, 10, &emitted);
    assert_root(&root, "bafybeieqobuwli6dr3djzxuiqxw27575do7mvm3q36jaaqwq2ixctejdoy");
    assert_int_equal(emitted.count, 4 + 2 + 1);
    emitted = (struct emitted){0};
    root = build_text(&(struct fgw_dag_profile){2, 2}, "abcdefghijklmnopqrstuvwxyz", TWOS, 13,
                      &emitted);
    assert_root(&root, "bafybeibduotaltymxjonul7q7ouher5l3hkjdgtlmo7wetfye3bqga7ira");
    assert_int_equal(emitted.count, 7 + 4 + 2 + 1);
}

static void canonical_or_custom(void **state)
{
    (void)state;
    static const struct {
        size_t sizes[4];
        bool canonical;
    } CASES[] = {
        {{4, 4, 4, 4}, true},  {{4, 4, 4, 1}, true},  {{4, 4, 3, 4}, false}, {{1, 4, 4, 4}, false},
        {{5, 4, 4, 3}, false}, {{4, 4, 4, 5}, false}, {{4, 4, 0, 0}, true},  {{0, 4, 0, 2}, true},
        {{3, 0, 0, 0}, true},  {{5, 0, 0, 0}, false}, {{0, 0, 0, 0}, true},
    };
    const struct fgw_dag_profile profile = {4, 4};
    for (size_t i = 0; i < FGW_COUNT_OF(CASES); i++) {
        static const char TEXT[] = "abcdefghijklmnopqrstuvwxyz";
        size_t total = 0;
        for (size_t j = 0; j < 4; j++) {
            total += CASES[i].sizes[j];
        }
        char text[32] = {0};
        memcpy(text, TEXT, total);
        struct emitted emitted = {0};
        struct fgw_dag_root root = build_text(&profile, text, CASES[i].sizes, 4, &emitted);
        assert_int_equal(root.canonical, CASES[i].canonical);
        assert_true(root.file_bytes == total);
    }
}

/* Walks the stored nodes from the root and collects the leaf order: the tree must hold every leaf
 * once, in order, all at one depth, for every count around powers of the width. */
struct stored {
    struct fgw_list list;
    struct fgw_cid cid;
    struct fgw_buf node;
};

static enum fgw_err store_node(void *context, const struct fgw_cid *cid, struct fgw_bytes node)
{
    struct stored *stored = fgw_xcalloc(1, sizeof *stored);
    stored->cid = *cid;
    fgw_buf_init(&stored->node, 0);
    assert_int_equal(fgw_buf_append(&stored->node, node), FGW_OK);
    fgw_list_push_back(context, &stored->list);
    return FGW_OK;
}

static const struct stored *find_node(struct fgw_list *nodes, struct fgw_bytes cid)
{
    for (struct fgw_list *at = nodes->next; at != nodes; at = at->next) {
        const struct stored *stored = FGW_CONTAINER_OF(at, struct stored, list);
        if (fgw_bytes_eq(fgw_cid_bytes(&stored->cid), cid)) {
            return stored;
        }
    }
    fail_msg("a node was not emitted");
    return NULL;
}

struct walk {
    struct fgw_list *nodes;
    struct fgw_arena arena;
    uint32_t next_leaf;
    size_t leaf_depth;
};

static uint64_t walk_tree(struct walk *walk, const struct fgw_cid_view *cid, uint64_t file_bytes,
                          size_t depth)
{
    if (cid->codec == FGW_CODEC_RAW) {
        uint32_t index = walk->next_leaf++;
        struct fgw_cid leaf = fgw_cid_of(FGW_CODEC_RAW, fgw_bytes(&index, sizeof index));
        assert_true(fgw_bytes_eq(cid->encoded, fgw_cid_bytes(&leaf)));
        assert_true(file_bytes == 1 + index % 5);
        assert_true(index == 0 || walk->leaf_depth == depth);
        walk->leaf_depth = depth;
        return file_bytes;
    }
    const struct stored *stored = find_node(walk->nodes, cid->encoded);
    struct fgw_unixfs_node node;
    assert_int_equal(fgw_unixfs_decode(&walk->arena, fgw_buf_bytes(&stored->node), &node), FGW_OK);
    assert_true(node.file_bytes == file_bytes && node.link_count > 0);
    uint64_t tree_bytes = stored->node.len;
    for (size_t i = 0; i < node.link_count; i++) {
        uint64_t below = walk_tree(walk, &node.links[i].cid, node.links[i].file_bytes, depth + 1);
        assert_true(below == node.links[i].tree_bytes);
        tree_bytes += below;
    }
    return tree_bytes;
}

static void one_shape(size_t width, uint32_t leaves)
{
    struct fgw_list nodes;
    fgw_list_init(&nodes);
    const struct fgw_dag_profile profile = {5, width};
    struct fgw_dag_builder *builder = fgw_dag_builder_new(&profile, store_node, &nodes);
    for (uint32_t i = 0; i < leaves; i++) {
        struct fgw_cid cid = fgw_cid_of(FGW_CODEC_RAW, fgw_bytes(&i, sizeof i));
        assert_int_equal(fgw_dag_builder_add(builder, &cid, 1 + i % 5), FGW_OK);
    }
    struct fgw_dag_root root;
    assert_int_equal(fgw_dag_builder_finish(builder, &root), FGW_OK);
    fgw_dag_builder_free(builder);
    size_t depth = 0;
    for (uint64_t reach = 1; reach < leaves; reach *= width) {
        depth++;
    }
    struct walk walk = {.nodes = &nodes};
    fgw_arena_init(&walk.arena, 0);
    struct fgw_cid_view view;
    assert_int_equal(fgw_cid_decode(fgw_cid_bytes(&root.cid), &view), FGW_OK);
    assert_true(walk_tree(&walk, &view, root.file_bytes, 0) == root.tree_bytes);
    assert_int_equal(walk.next_leaf, leaves);
    assert_int_equal(walk.leaf_depth, depth);
    fgw_arena_deinit(&walk.arena);
    for (struct fgw_list *at = fgw_list_pop_front(&nodes); at != NULL;
         at = fgw_list_pop_front(&nodes)) {
        struct stored *stored = FGW_CONTAINER_OF(at, struct stored, list);
        fgw_buf_deinit(&stored->node);
        fgw_xfree(stored);
    }
}

static void every_count_makes_a_whole_tree(void **state)
{
    (void)state;
    for (size_t width = 2; width <= 4; width++) {
        for (uint32_t leaves = 1; leaves <= 85; leaves++) {
            one_shape(width, leaves);
        }
    }
}

static void failures_come_through(void **state)
{
    (void)state;
    const struct fgw_dag_profile profile = {1, 2};
    struct fgw_cid leaf = fgw_cid_of(FGW_CODEC_RAW, FGW_LIT("x"));
    for (size_t fail_at = 1; fail_at <= 7; fail_at++) {
        struct emitted emitted = {.fail_at = fail_at};
        struct fgw_dag_builder *builder = fgw_dag_builder_new(&profile, count_node, &emitted);
        enum fgw_err err = FGW_OK;
        for (int i = 0; err == FGW_OK && i < 7; i++) {
            err = fgw_dag_builder_add(builder, &leaf, 1);
        }
        struct fgw_dag_root root;
        err = err == FGW_OK ? fgw_dag_builder_finish(builder, &root) : err;
        assert_int_equal(err, FGW_ERR_NOSPACE);
        assert_int_equal(emitted.count, fail_at);
        fgw_dag_builder_free(builder);
    }
    struct emitted emitted = {0};
    struct fgw_dag_builder *builder = fgw_dag_builder_new(&profile, count_node, &emitted);
    assert_int_equal(fgw_dag_builder_add(builder, &leaf, UINT64_C(1) << 62), FGW_OK);
    assert_int_equal(fgw_dag_builder_add(builder, &leaf, 1), FGW_ERR_TOO_LARGE);
    fgw_dag_builder_free(builder);
    fgw_dag_builder_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_roots),
        cmocka_unit_test(small_deep_trees),
        cmocka_unit_test(canonical_or_custom),
        cmocka_unit_test(every_count_makes_a_whole_tree),
        cmocka_unit_test(failures_come_through),
    };
    const struct CMUnitTest slow[] = {
        cmocka_unit_test(published_roots_1gib),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return getenv("FGW_TEST_SLOW") == NULL ? failed
                                           : failed + cmocka_run_group_tests(slow, NULL, NULL);
}
