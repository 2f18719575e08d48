/* digest.c: see digest.h. OpenSSL failures here mean a broken installation and abort. */
#include "base/digest.h"

#include <openssl/evp.h>
#include <pthread.h>

#include "base/check.h"

static EVP_MD *algorithms[FGW_DIGEST_KINDS];
static EVP_CIPHER *aes_gcm;
static pthread_once_t fetch_once = PTHREAD_ONCE_INIT;

static void fetch(void)
{
    static const char *const NAMES[] = {"SHA256", "SHA1", "MD5"};
    for (size_t i = 0; i < FGW_DIGEST_KINDS; i++) {
        algorithms[i] = EVP_MD_fetch(NULL, NAMES[i], NULL);
        FGW_CHECK(algorithms[i] != NULL);
    }
    aes_gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    FGW_CHECK(aes_gcm != NULL);
}

size_t fgw_digest_size(enum fgw_digest_kind kind)
{
    static const size_t SIZES[] = {FGW_SHA256_SIZE, FGW_SHA1_SIZE, FGW_MD5_SIZE};
    return SIZES[kind];
}

void fgw_digest_begin(struct fgw_digest *digest, enum fgw_digest_kind kind)
{
    (void)pthread_once(&fetch_once, fetch);
    if (digest->context == NULL) {
        digest->context = EVP_MD_CTX_new();
        FGW_CHECK(digest->context != NULL);
    }
    /* the same algorithm again: OpenSSL then only resets, which is the cheap path */
    digest->kind = kind;
    FGW_CHECK(EVP_DigestInit_ex2(digest->context, algorithms[kind], NULL) == 1);
}

void fgw_digest_update(struct fgw_digest *digest, struct fgw_bytes bytes)
{
    if (bytes.len > 0) {
        FGW_CHECK(EVP_DigestUpdate(digest->context, bytes.ptr, bytes.len) == 1);
    }
}

void fgw_digest_end(struct fgw_digest *digest, uint8_t *out)
{
    FGW_CHECK(EVP_DigestFinal_ex(digest->context, out, NULL) == 1);
}

void fgw_digest_peek(const struct fgw_digest *digest, uint8_t *out)
{
    EVP_MD_CTX *copy = EVP_MD_CTX_new();
    FGW_CHECK(copy != NULL && EVP_MD_CTX_copy_ex(copy, digest->context) == 1);
    FGW_CHECK(EVP_DigestFinal_ex(copy, out, NULL) == 1);
    EVP_MD_CTX_free(copy);
}

void fgw_digest_deinit(struct fgw_digest *digest)
{
    EVP_MD_CTX_free(digest->context);
    digest->context = NULL;
}

/* -- per-thread contexts, freed when the thread ends ---------------------------------------- */

struct thread_contexts {
    struct fgw_digest digests[FGW_DIGEST_KINDS];
    EVP_CIPHER_CTX *cipher;
};

static pthread_key_t contexts_key;
static pthread_once_t contexts_once = PTHREAD_ONCE_INIT;

static void free_contexts(void *opaque)
{
    struct thread_contexts *contexts = opaque;
    for (size_t i = 0; i < FGW_DIGEST_KINDS; i++) {
        fgw_digest_deinit(&contexts->digests[i]);
    }
    EVP_CIPHER_CTX_free(contexts->cipher);
    fgw_xfree(contexts);
}

static void make_key(void)
{
    FGW_CHECK(pthread_key_create(&contexts_key, free_contexts) == 0);
}

static struct thread_contexts *my_contexts(void)
{
    (void)pthread_once(&contexts_once, make_key);
    struct thread_contexts *contexts = pthread_getspecific(contexts_key);
    if (contexts == NULL) {
        contexts = fgw_xcalloc(1, sizeof *contexts);
        contexts->cipher = EVP_CIPHER_CTX_new();
        FGW_CHECK(contexts->cipher != NULL && pthread_setspecific(contexts_key, contexts) == 0);
    }
    return contexts;
}

void fgw_digest_once(enum fgw_digest_kind kind, struct fgw_bytes bytes, uint8_t *out)
{
    struct fgw_digest *digest = &my_contexts()->digests[kind];
    fgw_digest_begin(digest, kind);
    fgw_digest_update(digest, bytes);
    fgw_digest_end(digest, out);
}

void fgw_hmac_sha256(struct fgw_bytes key, struct fgw_bytes bytes, uint8_t out[FGW_SHA256_SIZE])
{
    enum { BLOCK = 64 };
    uint8_t pad[BLOCK] = {0};
    uint8_t inner[FGW_SHA256_SIZE];
    struct fgw_digest *digest = &my_contexts()->digests[FGW_DIGEST_SHA256];
    if (key.len > BLOCK) {
        fgw_sha256(key, pad);
    } else if (key.len > 0) {
        memcpy(pad, key.ptr, key.len);
    }
    for (size_t i = 0; i < BLOCK; i++) {
        pad[i] ^= 0x36;
    }
    fgw_digest_begin(digest, FGW_DIGEST_SHA256);
    fgw_digest_update(digest, fgw_bytes(pad, BLOCK));
    fgw_digest_update(digest, bytes);
    fgw_digest_end(digest, inner);
    for (size_t i = 0; i < BLOCK; i++) {
        pad[i] ^= 0x36 ^ 0x5c;
    }
    fgw_digest_begin(digest, FGW_DIGEST_SHA256);
    fgw_digest_update(digest, fgw_bytes(pad, BLOCK));
    fgw_digest_update(digest, fgw_bytes(inner, sizeof inner));
    fgw_digest_end(digest, out);
}

void fgw_hkdf_sha256(struct fgw_bytes key, struct fgw_bytes salt, struct fgw_bytes info,
                     uint8_t *out, size_t out_len)
{
    FGW_CHECK(out_len <= (size_t)255 * FGW_SHA256_SIZE);
    uint8_t extracted[FGW_SHA256_SIZE];
    uint8_t block[FGW_SHA256_SIZE];
    struct fgw_buf input;
    fgw_buf_init(&input, 0);
    fgw_hmac_sha256(salt, key, extracted);
    uint8_t counter = 0;
    for (size_t done = 0; done < out_len;) {
        fgw_buf_clear(&input);
        (void)fgw_buf_append(&input, fgw_bytes(block, counter == 0 ? 0 : sizeof block));
        (void)fgw_buf_append(&input, info);
        (void)fgw_buf_append_byte(&input, ++counter);
        fgw_hmac_sha256(fgw_bytes(extracted, sizeof extracted), fgw_buf_bytes(&input), block);
        size_t take = out_len - done < sizeof block ? out_len - done : sizeof block;
        memcpy(out + done, block, take);
        done += take;
    }
    fgw_buf_deinit(&input);
}

/* -- AES-256-GCM --------------------------------------------------------------------------- */

static bool gcm_feed(EVP_CIPHER_CTX *context, struct fgw_bytes associated, struct fgw_bytes input,
                     uint8_t *out)
{
    enum { STEP = 1 << 30 };
    int written = 0;
    bool ok = associated.len == 0 || EVP_CipherUpdate(context, NULL, &written, associated.ptr,
                                                      (int)associated.len) == 1;
    while (ok && input.len > 0) {
        size_t step = input.len < STEP ? input.len : STEP;
        ok = EVP_CipherUpdate(context, out, &written, input.ptr, (int)step) == 1;
        out += step;
        input = fgw_bytes_sub(input, step, SIZE_MAX);
    }
    return ok;
}

void fgw_aead_seal(const uint8_t key[FGW_AEAD_KEY_SIZE], const uint8_t nonce[FGW_AEAD_NONCE_SIZE],
                   struct fgw_bytes associated, struct fgw_bytes plain, uint8_t *out,
                   uint8_t out_tag[FGW_AEAD_TAG_SIZE])
{
    (void)pthread_once(&fetch_once, fetch);
    EVP_CIPHER_CTX *context = my_contexts()->cipher;
    uint8_t rest[16];
    int written = 0;
    FGW_CHECK(EVP_CipherInit_ex2(context, aes_gcm, key, nonce, 1, NULL) == 1);
    FGW_CHECK(gcm_feed(context, associated, plain, out));
    FGW_CHECK(EVP_CipherFinal_ex(context, rest, &written) == 1);
    FGW_CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, FGW_AEAD_TAG_SIZE, out_tag) == 1);
}

enum fgw_err fgw_aead_open(const uint8_t key[FGW_AEAD_KEY_SIZE],
                           const uint8_t nonce[FGW_AEAD_NONCE_SIZE], struct fgw_bytes associated,
                           struct fgw_bytes sealed, const uint8_t tag[FGW_AEAD_TAG_SIZE],
                           uint8_t *out)
{
    (void)pthread_once(&fetch_once, fetch);
    EVP_CIPHER_CTX *context = my_contexts()->cipher;
    uint8_t rest[16];
    uint8_t want_tag[FGW_AEAD_TAG_SIZE];
    int written = 0;
    memcpy(want_tag, tag, sizeof want_tag);
    FGW_CHECK(EVP_CipherInit_ex2(context, aes_gcm, key, nonce, 0, NULL) == 1);
    FGW_CHECK(gcm_feed(context, associated, sealed, out));
    FGW_CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, sizeof want_tag, want_tag) == 1);
    return EVP_CipherFinal_ex(context, rest, &written) == 1 ? FGW_OK : FGW_ERR_CORRUPT;
}

/* -- GMAC ------------------------------------------------------------------------------------- */

void fgw_gmac_init(struct fgw_gmac *gmac, const uint8_t key[FGW_AEAD_KEY_SIZE])
{
    (void)pthread_once(&fetch_once, fetch);
    gmac->context = EVP_CIPHER_CTX_new();
    FGW_CHECK(gmac->context != NULL);
    FGW_CHECK(EVP_CipherInit_ex2(gmac->context, aes_gcm, key, NULL, 1, NULL) == 1);
}

void fgw_gmac_begin(struct fgw_gmac *gmac, const uint8_t nonce[FGW_AEAD_NONCE_SIZE])
{
    FGW_CHECK(EVP_CipherInit_ex2(gmac->context, NULL, NULL, nonce, 1, NULL) == 1);
}

void fgw_gmac_update(struct fgw_gmac *gmac, struct fgw_bytes bytes)
{
    FGW_CHECK(gcm_feed(gmac->context, bytes, fgw_bytes(NULL, 0), NULL));
}

void fgw_gmac_end(struct fgw_gmac *gmac, uint8_t out_tag[FGW_AEAD_TAG_SIZE])
{
    uint8_t rest[16];
    int written = 0;
    FGW_CHECK(EVP_CipherFinal_ex(gmac->context, rest, &written) == 1);
    FGW_CHECK(EVP_CIPHER_CTX_ctrl(gmac->context, EVP_CTRL_AEAD_GET_TAG, FGW_AEAD_TAG_SIZE,
                                  out_tag) == 1);
}

void fgw_gmac_deinit(struct fgw_gmac *gmac)
{
    EVP_CIPHER_CTX_free(gmac->context);
    gmac->context = NULL;
}
