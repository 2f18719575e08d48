/* lister.h: the rules of a list page, the same for both backends: rows come in key order, entries
 * and common prefixes go out, and the caller is told where to go on reading so that nothing under a
 * prefix already counted is read (skip-scan).
 */
#ifndef FGW_META_LISTER_H
#define FGW_META_LISTER_H

#include "meta/meta.h"

struct fgw_lister {
    struct fgw_arena *arena;
    const struct fgw_list_query *query;
    struct fgw_list_entry *entries; /* query->max + 1 */
    size_t count;
    bool full;                    /* one more than asked for was seen */
    struct fgw_bytes skip_prefix; /* rows under it are counted already; empty: none */
    struct fgw_buf seek;
};

/* query->max >= 1. Free with _deinit (the entries stay in the arena). */
void fgw_lister_init(struct fgw_lister *lister, struct fgw_arena *arena,
                     const struct fgw_list_query *query);
void fgw_lister_deinit(struct fgw_lister *lister);

/* Where to start: first key that can belong to the page (a view into the lister). A list of
 * versions with has_after_version starts at `after` itself. */
struct fgw_bytes fgw_lister_start(struct fgw_lister *lister);

enum fgw_lister_next {
    FGW_LISTER_NEXT, /* read the next row */
    FGW_LISTER_SEEK, /* everything under seek's prefix is done: go to fgw_lister_seek */
    FGW_LISTER_DONE  /* page full, or the key lies behind the prefix */
};
/* Looks at the key alone: *out_take means "decode the row and call fgw_lister_add". visible: the row
 * counts (false: a delete marker in a list of objects, which makes no common prefix either). */
enum fgw_lister_next fgw_lister_key(struct fgw_lister *lister, struct fgw_bytes key, bool visible,
                                    bool *out_take);
/* First key behind the prefix to skip. */
struct fgw_bytes fgw_lister_seek(const struct fgw_lister *lister);
/* Adds the entry of the key last looked at; object->key must live in the arena. */
enum fgw_lister_next fgw_lister_add(struct fgw_lister *lister, const struct fgw_object *object);
/* Likewise without a copy: the zeroed object of the entry, to be filled in; NULL means DONE. */
struct fgw_object *fgw_lister_slot(struct fgw_lister *lister);
/* Entries collected, at most query->max of them; truncated when one more was seen. */
void fgw_lister_result(const struct fgw_lister *lister, struct fgw_object_list *out_list);

/* First key in byte order behind all keys that begin with prefix; false when there is none. */
bool fgw_prefix_successor(struct fgw_buf *out, struct fgw_bytes prefix);

#endif
