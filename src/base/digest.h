/* digest.h: SHA-256, SHA-1, MD5 and HMAC-SHA256 over OpenSSL, with the algorithms fetched once per
 * process and contexts meant to be kept and reused (a fresh fetch a hash costs three times a small
 * hash). A context belongs to one thread at a time. */
#ifndef FGW_BASE_DIGEST_H
#define FGW_BASE_DIGEST_H

#include "base/bytes.h"

enum fgw_digest_kind { FGW_DIGEST_SHA256, FGW_DIGEST_SHA1, FGW_DIGEST_MD5, FGW_DIGEST_KINDS };
enum { FGW_SHA256_SIZE = 32, FGW_SHA1_SIZE = 20, FGW_MD5_SIZE = 16, FGW_DIGEST_MAX = 32 };

size_t fgw_digest_size(enum fgw_digest_kind kind);

struct fgw_digest {
    void *context; /* EVP_MD_CTX; made by the first begin, kept until deinit */
    enum fgw_digest_kind kind;
};

/* Zero-initialise; begin may be called any number of times, also in the middle. */
void fgw_digest_begin(struct fgw_digest *digest, enum fgw_digest_kind kind);
void fgw_digest_update(struct fgw_digest *digest, struct fgw_bytes bytes);
/* Writes fgw_digest_size bytes; begin must come before the next update. */
void fgw_digest_end(struct fgw_digest *digest, uint8_t *out);
/* Value so far, going on afterwards. */
void fgw_digest_peek(const struct fgw_digest *digest, uint8_t *out);
void fgw_digest_deinit(struct fgw_digest *digest);

/* One shot, on a per-thread context. */
void fgw_digest_once(enum fgw_digest_kind kind, struct fgw_bytes bytes, uint8_t *out);
static inline void fgw_sha256(struct fgw_bytes bytes, uint8_t out[FGW_SHA256_SIZE])
{
    fgw_digest_once(FGW_DIGEST_SHA256, bytes, out);
}
void fgw_hmac_sha256(struct fgw_bytes key, struct fgw_bytes bytes, uint8_t out[FGW_SHA256_SIZE]);
/* HKDF-SHA256 (RFC 5869), extract and expand; out_len at most 8160. */
void fgw_hkdf_sha256(struct fgw_bytes key, struct fgw_bytes salt, struct fgw_bytes info,
                     uint8_t *out, size_t out_len);

/* AES-256-GCM with a 96-bit nonce and a 128-bit tag (NIST SP 800-38D). out has plain.len bytes. */
enum { FGW_AEAD_KEY_SIZE = 32, FGW_AEAD_NONCE_SIZE = 12, FGW_AEAD_TAG_SIZE = 16 };
void fgw_aead_seal(const uint8_t key[FGW_AEAD_KEY_SIZE], const uint8_t nonce[FGW_AEAD_NONCE_SIZE],
                   struct fgw_bytes associated, struct fgw_bytes plain, uint8_t *out,
                   uint8_t out_tag[FGW_AEAD_TAG_SIZE]);
/* FGW_ERR_CORRUPT when the tag does not match; out then holds nothing meant for use. */
enum fgw_err fgw_aead_open(const uint8_t key[FGW_AEAD_KEY_SIZE],
                           const uint8_t nonce[FGW_AEAD_NONCE_SIZE], struct fgw_bytes associated,
                           struct fgw_bytes sealed, const uint8_t tag[FGW_AEAD_TAG_SIZE],
                           uint8_t *out) FGW_MUST_CHECK;

/* GMAC: AES-256-GCM without a plaintext, over bytes given in pieces; the context stays keyed, so
 * that a small message costs no key schedule. One nonce a key and message, never again. */
struct fgw_gmac {
    void *context; /* EVP_CIPHER_CTX */
};
void fgw_gmac_init(struct fgw_gmac *gmac, const uint8_t key[FGW_AEAD_KEY_SIZE]);
void fgw_gmac_begin(struct fgw_gmac *gmac, const uint8_t nonce[FGW_AEAD_NONCE_SIZE]);
void fgw_gmac_update(struct fgw_gmac *gmac, struct fgw_bytes bytes);
void fgw_gmac_end(struct fgw_gmac *gmac, uint8_t out_tag[FGW_AEAD_TAG_SIZE]);
void fgw_gmac_deinit(struct fgw_gmac *gmac);

#endif
