/* test_commp.c: published piece commitments and piece CIDs. */
#include "cmocka_all.h"

#include "base/check.h"
#include "base/encode.h"
#include "cid/piece_cid.h"

static void zero_roots(void **state)
{
    (void)state;
    static const struct {
        unsigned height;
        const char *root;
    } VECTORS[] = {
        {0, "0000000000000000000000000000000000000000000000000000000000000000"},
        {1, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb0b"},
        {2, "3731bb99ac689f66eef5973e4a94da188f4ddcae580724fc6f3fd60dfd488333"},
        {3, "642a607ef886b004bf2c1978463ae1d4693ac0f410eb2d1b7a47fe205e5e750f"},
        {4, "57a2381a28652bf47f6bef7aca679be4aede5871ab5cf3eb2c08114488cb8526"},
        {5, "1f7ac9595510e09ea41c460b176430bb322cd6fb412ec57cb17d989a4310372f"},
        {15, "d99887b973573a96e11393645236c17b1f4c7034d723c7a99f709bb4da61162b"},
        {20, "dafdab6da9364453c26d33726b9fefe343be8f81649ec009aad3faff50617508"},
        {25, "ccc3c012f5b05e811a2bbfdd0f6833b84275b47bf229c0052a82484f3c1a5b3d"},
        {30, "077e5fde35c50a9303a55009e3498a4ebedff39c42b710b730d8ec7ac7afa63e"},
        {31, "e64005a6bfe3777953b8ad6ef93f0fca1049b2041654f2a411f7702799cece02"},
    };
    for (size_t i = 0; i < FGW_COUNT_OF(VECTORS); i++) {
        uint8_t root[FGW_COMMP_NODE_SIZE];
        char hex[2 * FGW_COMMP_NODE_SIZE + 1] = {0};
        fgw_commp_zero_root(VECTORS[i].height, root);
        fgw_hex_encode(fgw_bytes(root, sizeof root), hex);
        assert_string_equal(hex, VECTORS[i].root);
    }
}

static void assert_cids(const struct fgw_piece *piece, const char *v1, const char *v2)
{
    char text1[FGW_PIECE_CID_V1_TEXT_SIZE];
    char text2[FGW_PIECE_CID_V2_TEXT_SIZE];
    fgw_piece_cid_v1_text(piece, text1);
    fgw_piece_cid_v2_text(piece, text2);
    if (v1 != NULL) {
        assert_string_equal(text1, v1);
    }
    if (v2 != NULL) {
        assert_string_equal(text2, v2);
    }
    struct fgw_piece back;
    bool sized = true;
    assert_int_equal(fgw_piece_cid_from_text(fgw_bytes_str(text1), &back, &sized), FGW_OK);
    assert_false(sized);
    assert_memory_equal(back.root, piece->root, sizeof back.root);
    assert_int_equal(fgw_piece_cid_from_text(fgw_bytes_str(text2), &back, &sized), FGW_OK);
    assert_true(sized && back.height == piece->height &&
                back.payload_bytes == piece->payload_bytes);
    assert_memory_equal(back.root, piece->root, sizeof back.root);
}

/* In pieces of `step` bytes. */
static struct fgw_piece commit(struct fgw_bytes payload, size_t step)
{
    struct fgw_commp commp;
    fgw_commp_init(&commp);
    for (size_t at = 0; at < payload.len; at += step) {
        assert_int_equal(fgw_commp_update(&commp, fgw_bytes_sub(payload, at, step)), FGW_OK);
    }
    struct fgw_piece piece;
    fgw_commp_finish(&commp, &piece);
    fgw_commp_deinit(&commp);
    return piece;
}

enum pattern { ZEROS, CC, HELLO, COUNTED, SEQUENCE };

struct vector {
    enum pattern pattern;
    size_t size;
    unsigned height;
    const char *v1;
    const char *v2;
};

static void fill(uint8_t *out, enum pattern pattern, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        switch (pattern) {
        case ZEROS:
            out[i] = 0;
            break;
        case CC:
            out[i] = 0xcc;
            break;
        case HELLO:
            out[i] = (uint8_t) "hello world"[i];
            break;
        case COUNTED: /* four runs of 127, then zeros */
            out[i] = (uint8_t)(i / 127 < 4 ? i / 127 : 0);
            break;
        case SEQUENCE:
            out[i] = (uint8_t)(7 * i + 3);
            break;
        }
    }
}

static void published_pieces(void **state)
{
    (void)state;
    static const struct vector VECTORS[] = {
        {ZEROS, 0, 2, "baga6ea4seaqdomn3tgwgrh3g532zopskstnbrd2n3sxfqbze7rxt7vqn7veigmy",
         "bafkzcibcp4bdomn3tgwgrh3g532zopskstnbrd2n3sxfqbze7rxt7vqn7veigmy"},
        {ZEROS, 127, 2, "baga6ea4seaqdomn3tgwgrh3g532zopskstnbrd2n3sxfqbze7rxt7vqn7veigmy",
         "bafkzcibcaabdomn3tgwgrh3g532zopskstnbrd2n3sxfqbze7rxt7vqn7veigmy"},
        {ZEROS, 128, 3, "baga6ea4seaqgiktap34inmaex4wbs6cghlq5i2j2yd2bb2zndn5ep7ralzphkdy",
         "bafkzcibcpybwiktap34inmaex4wbs6cghlq5i2j2yd2bb2zndn5ep7ralzphkdy"},
        {COUNTED, 508, 4, "baga6ea4seaqes3nobte6ezpp4wqan2age2s5yxcatzotcvobhgcmv5wi2xh5mbi",
         "bafkzcibcaaces3nobte6ezpp4wqan2age2s5yxcatzotcvobhgcmv5wi2xh5mbi"},
        {COUNTED, 512, 5, "baga6ea4seaqn42av3szurbbscwuu3zjssvfwbpsvbjf6y3tukvlgl2nf5rha6pa",
         "bafkzcibd7abqlxticxolgseegik2stpfgkkuwyf6kufex3doorkvmzpjuxwe4dz4"},
        {COUNTED, 513, 5, "baga6ea4seaqn42av3szurbbscwuu3zjssvfwbpsvbjf6y3tukvlgl2nf5rha6pa",
         "bafkzcibd64bqlxticxolgseegik2stpfgkkuwyf6kufex3doorkvmzpjuxwe4dz4"},
        {ZEROS, 1024, 6, "baga6ea4seaqpy7usqklokfx2vxuynmupslkeutzexe2uqurdg5vhtebhxqmpqmy", NULL},
        {CC, 127, 2, "baga6ea4seaqmfldjtozgne6adk7eve2vdxte7vzlivae7nzsbrawobo546zkijq", NULL},
        {CC, 1016, 5, "baga6ea4seaqjxgfdkdu37aryhg7bqqiwizj5f6ugasftgeocabwnj4cxkgisaoq", NULL},
        {HELLO, 11, 2, "baga6ea4seaqo4xahwtvbmhunywt2yhzjebhylq4yei73dmrzu7bky4lnev6ukgq",
         "bafkzcibcoqbo4xahwtvbmhunywt2yhzjebhylq4yei73dmrzu7bky4lnev6ukgq"},
        {SEQUENCE, 65536, 12, "baga6ea4seaqg6b66qpmgcz6evqc7rfbj7qazwwu5odu57f265ct2bynu7ctcaby",
         NULL},
        {SEQUENCE, 1040384, 15, "baga6ea4seaqgajzv5gs4wxdxbb23t5dxh6mkimhrxbxu57pwhzu5sxfv3hogsga",
         NULL},
        {SEQUENCE, 1040385, 16, "baga6ea4seaqcm57jdlotz4emfqbk3kpdvajtvxistikgubx4e5qhg5g3lxubyci",
         NULL},
        {SEQUENCE, 1048576, 16, "baga6ea4seaqi3xhk57bdp7itgxgyjyesb3imzrtska7fiuwoep2pxcb7m52euii",
         NULL},
    };
    for (size_t i = 0; i < FGW_COUNT_OF(VECTORS); i++) {
        size_t size = VECTORS[i].size;
        uint8_t *bytes = fgw_xmalloc(size + 1);
        fill(bytes, VECTORS[i].pattern, size);
        struct fgw_piece piece = commit(fgw_bytes(bytes, size), 64 * 1024);
        assert_int_equal(piece.height, VECTORS[i].height);
        assert_true(piece.payload_bytes == size);
        assert_cids(&piece, VECTORS[i].v1, VECTORS[i].v2);
        fgw_xfree(bytes);
    }
}

static void whole_sectors_of_zeros(void **state)
{
    (void)state;
    struct fgw_piece piece = {.height = 30, .payload_bytes = fgw_commp_capacity(30)};
    fgw_commp_zero_root(30, piece.root);
    assert_cids(&piece, "baga6ea4seaqao7s73y24kcutaosvacpdjgfe5pw76ooefnyqw4ynr3d2y6x2mpq",
                "bafkzcibcaapao7s73y24kcutaosvacpdjgfe5pw76ooefnyqw4ynr3d2y6x2mpq");
    assert_true(piece.payload_bytes == UINT64_C(34091302912));
    piece = (struct fgw_piece){.height = 31, .payload_bytes = fgw_commp_capacity(31)};
    fgw_commp_zero_root(31, piece.root);
    assert_cids(&piece, "baga6ea4seaqomqafu276g53zko4k23xzh4h4uecjwicbmvhsuqi7o4bhthhm4aq",
                "bafkzcibcaap6mqafu276g53zko4k23xzh4h4uecjwicbmvhsuqi7o4bhthhm4aq");
    /* the longest text there is: the largest padding */
    piece.payload_bytes = 1;
    assert_cids(&piece, NULL, NULL);
}

static void pieces_of_any_size_agree(void **state)
{
    (void)state;
    uint8_t bytes[1000];
    fill(bytes, SEQUENCE, sizeof bytes);
    struct fgw_piece whole = commit(fgw_bytes(bytes, sizeof bytes), sizeof bytes);
    static const size_t STEPS[] = {1, 2, 3, 63, 126, 127, 128, 253, 254, 255, 999};
    for (size_t i = 0; i < FGW_COUNT_OF(STEPS); i++) {
        struct fgw_piece piece = commit(fgw_bytes(bytes, sizeof bytes), STEPS[i]);
        assert_memory_equal(piece.root, whole.root, sizeof whole.root);
    }
}

/* Every length up to a few quads against the plain definition: pad, spread, hash level by level. */
static void plain_root(const uint8_t *payload, size_t size, unsigned height,
                       uint8_t out[FGW_COMMP_NODE_SIZE])
{
    enum { LEAVES_MAX = 64 };
    static uint8_t nodes[LEAVES_MAX][32];
    size_t count = (size_t)1 << height;
    assert_true(count <= LEAVES_MAX);
    memset(nodes, 0, sizeof nodes);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        if ((payload[bit / 8] >> bit % 8 & 1) != 0) {
            nodes[bit / 254][bit % 254 / 8] |= (uint8_t)(1U << bit % 254 % 8);
        }
    }
    for (; count > 1; count /= 2) {
        for (size_t i = 0; i < count / 2; i++) {
            uint8_t pair[64];
            memcpy(pair, nodes[2 * i], 32);
            memcpy(pair + 32, nodes[2 * i + 1], 32);
            fgw_sha256(fgw_bytes(pair, sizeof pair), nodes[i]);
            nodes[i][31] &= 0x3f;
        }
    }
    memcpy(out, nodes[0], 32);
}

static void every_length_follows_the_definition(void **state)
{
    (void)state;
    uint8_t bytes[16 * FGW_COMMP_QUAD_SIZE];
    fill(bytes, SEQUENCE, sizeof bytes);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        struct fgw_piece piece = commit(fgw_bytes(bytes, size), 300);
        uint8_t expected[FGW_COMMP_NODE_SIZE];
        plain_root(bytes, size, piece.height, expected);
        assert_memory_equal(piece.root, expected, sizeof expected);
        assert_true(size <= fgw_commp_capacity(piece.height));
        assert_true(piece.height == FGW_COMMP_HEIGHT_MIN ||
                    size > fgw_commp_capacity(piece.height - 1));
    }
}

static void too_long_is_refused(void **state)
{
    (void)state;
    struct fgw_commp commp;
    fgw_commp_init(&commp);
    /* not read: refused by its length */
    uint8_t byte = 0;
    uint64_t capacity = fgw_commp_capacity(FGW_COMMP_HEIGHT_MAX);
    assert_int_equal(fgw_commp_update(&commp, fgw_bytes(&byte, (size_t)capacity + 1)),
                     FGW_ERR_TOO_LARGE);
    assert_int_equal(fgw_commp_update(&commp, fgw_bytes(&byte, SIZE_MAX)), FGW_ERR_TOO_LARGE);
    assert_int_equal(fgw_commp_update(&commp, fgw_bytes(&byte, 1)), FGW_OK);
    assert_int_equal(fgw_commp_update(&commp, fgw_bytes(&byte, (size_t)capacity)),
                     FGW_ERR_TOO_LARGE);
    fgw_commp_deinit(&commp);
}

static enum fgw_err parse_encoded(struct fgw_bytes encoded)
{
    char text[2 * 64 + 2];
    text[0] = 'f';
    fgw_hex_encode(encoded, text + 1);
    struct fgw_piece piece;
    bool sized;
    return fgw_piece_cid_from_text(fgw_bytes(text, 1 + 2 * encoded.len), &piece, &sized);
}

#define ROOT "0123456789abcdef0123456789abcde\x3f"

static void piece_cids_refused(void **state)
{
    (void)state;
    assert_int_equal(parse_encoded(FGW_LIT("\x01\x55\x91\x20\x22\x00\x02" ROOT)), FGW_OK);
    static const struct {
        struct fgw_bytes cid;
        enum fgw_err err;
    } CASES[] = {
        /* height 1, 32; padding above the capacity, not minimal, too long */
        {{(const uint8_t *)"\x01\x55\x91\x20\x22\x00\x01" ROOT, 39}, FGW_ERR_PARSE},
        {{(const uint8_t *)"\x01\x55\x91\x20\x22\x00\x20" ROOT, 39}, FGW_ERR_TOO_LARGE},
        {{(const uint8_t *)"\x01\x55\x91\x20\x23\x80\x01\x02" ROOT, 40}, FGW_ERR_PARSE},
        {{(const uint8_t *)"\x01\x55\x91\x20\x23\x80\x00\x02" ROOT, 40}, FGW_ERR_PARSE},
        /* a digest too short by one, too long by one */
        {{(const uint8_t *)"\x01\x55\x91\x20\x21\x00" ROOT, 38}, FGW_ERR_PARSE},
        {{(const uint8_t *)"\x01\x55\x91\x20\x23\x00\x02" ROOT "\x00", 40}, FGW_ERR_PARSE},
        /* the root has 255 bits */
        {{(const uint8_t *)"\x01\x55\x91\x20\x22\x00\x02"
                           "0123456789abcdef0123456789abcde\x40",
          39},
         FGW_ERR_PARSE},
        /* codec and hash mixed up; v1 of 31 bytes */
        {{(const uint8_t *)"\x01\x81\xe2\x03\x91\x20\x22\x00\x02" ROOT, 41}, FGW_ERR_PARSE},
        {{(const uint8_t *)"\x01\x55\x92\x20\x20" ROOT, 37}, FGW_ERR_PARSE},
        {{(const uint8_t *)"\x01\x81\xe2\x03\x92\x20\x1f" ROOT, 38}, FGW_ERR_PARSE},
        {{(const uint8_t *)"\x01\x55\x12\x20" ROOT, 36}, FGW_ERR_PARSE},
    };
    for (size_t i = 0; i < FGW_COUNT_OF(CASES); i++) {
        assert_int_equal(parse_encoded(CASES[i].cid), CASES[i].err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_roots),
        cmocka_unit_test(published_pieces),
        cmocka_unit_test(whole_sectors_of_zeros),
        cmocka_unit_test(pieces_of_any_size_agree),
        cmocka_unit_test(every_length_follows_the_definition),
        cmocka_unit_test(too_long_is_refused),
        cmocka_unit_test(piece_cids_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
