/* fixture.h: a data directory of a test, opened and used from fibers. */
#ifndef FGW_TESTS_STORAGE_FIXTURE_H
#define FGW_TESTS_STORAGE_FIXTURE_H

#include "cmocka_all.h"

#include "base/bytes.h"
#include "event/fiber.h"
#include "storage/storage.h"

struct fixture {
    char path[64];
    struct fgw_storage_options options;
    struct fgw_storage *storage;
    struct fgw_error error;
};

/* A new directory under /tmp, not opened. */
void fixture_init(struct fixture *fixture);
/* Closes and removes everything. */
void fixture_deinit(struct fixture *fixture);
enum fgw_err fixture_try_open(struct fixture *fixture);
void fixture_open(struct fixture *fixture);
void fixture_close(struct fixture *fixture);
/* Drops the index, as if it was lost. */
void fixture_drop_index(struct fixture *fixture);
void fixture_drop_checkpoints(struct fixture *fixture);
/* "PATH/NAME" in a static buffer. */
const char *fixture_file(const struct fixture *fixture, const char *name);
void fixture_run(struct fixture *fixture, void (*fn)(struct fixture *fixture));

/* -- operations ------------------------------------------------------------------------------ */

void make_owner(struct fgw_storage_owner *owner, const char *key, unsigned owner_number);
/* A block over bytes, hashed. */
struct fgw_storage_block make_block(struct fgw_bytes bytes);

/* Puts row `key` = CID of the body, holding it; fails with PRECONDITION_FAILED when the row must
 * not exist and does. The old body's hold is released. owner_number names the version. */
struct put {
    const char *key;
    struct fgw_bytes body;
    unsigned owner_number;
    bool if_none_match;
    struct fgw_storage_place place; /* out */
};
enum fgw_err put_object(struct fgw_storage *storage, struct put *put);
enum fgw_err delete_object(struct fgw_storage *storage, const char *key);
/* FGW_ERR_NOT_FOUND, or the whole body appended to out. */
enum fgw_err get_object(struct fgw_storage *storage, const char *key, struct fgw_buf *out);
enum fgw_err read_blob(struct fgw_storage *storage, const struct fgw_cid *root,
                       const struct fgw_storage_place *hint, struct fgw_buf *out);

/* Writes a blob of `size` (above 1 MiB) bytes made from `seed` through a writer, held by the owner;
 * its root is made up. */
enum fgw_err put_large(struct fgw_storage *storage, const struct fgw_storage_owner *owner,
                       size_t size, unsigned seed, struct fgw_cid *out_root);
/* The same as an object: its row as put_object writes it. */
enum fgw_err put_large_object(struct fgw_storage *storage, const char *key, unsigned owner_number,
                              size_t size, unsigned seed);
/* Puts row `key` on grounds of a hold. */
enum fgw_err commit_row(struct fgw_storage *storage, const char *key, unsigned owner_number,
                        const struct fgw_storage_hold *hold);
/* The bytes put_large writes. */
void fill_large(uint8_t *out, size_t size, unsigned seed);
/* Is there a row of this table of the index? */
bool has_row(struct fgw_storage *storage, char table);
/* Ends holds: (owner, extent 0) on root, or all of the owner's when root is NULL. */
enum fgw_err release_hold(struct fgw_storage *storage, const struct fgw_storage_owner *owner,
                          const struct fgw_cid *root);

/* All rows of both families, as text, to compare. */
void dump_rows(struct fgw_storage *storage, struct fgw_buf *out);

/* Holds that a walk over the store meets. From a fiber. */
size_t count_holds(struct fgw_storage *storage);

#endif
