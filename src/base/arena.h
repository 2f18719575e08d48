/* arena.h: memory that lives exactly as long as one request. Allocation is a pointer bump; all of
 * it is given back at once by reset or deinit. Not thread-safe: one request, one worker. */
#ifndef FGW_BASE_ARENA_H
#define FGW_BASE_ARENA_H

#include "base/bytes.h"

struct fgw_arena_block;

struct fgw_arena {
    struct fgw_arena_block *blocks; /* newest first */
    uint8_t *next;
    size_t left;
    size_t used_bytes; /* handed out since init or reset */
    size_t block_size;
};

/* block_size: bytes of an ordinary block (larger requests get a block of their own); 0 = 16 KiB. */
void fgw_arena_init(struct fgw_arena *arena, size_t block_size);
void fgw_arena_deinit(struct fgw_arena *arena);
/* Frees all but one ordinary block. */
void fgw_arena_reset(struct fgw_arena *arena);
/* 16-byte aligned, zeroed by _zalloc only; never NULL. */
void *fgw_arena_alloc(struct fgw_arena *arena, size_t size) __attribute__((returns_nonnull));
void *fgw_arena_zalloc(struct fgw_arena *arena, size_t size) __attribute__((returns_nonnull));
struct fgw_bytes fgw_arena_copy(struct fgw_arena *arena, struct fgw_bytes bytes);
/* NUL-terminated. */
char *fgw_arena_strdup(struct fgw_arena *arena, struct fgw_bytes text) __attribute__((returns_nonnull));
char *fgw_arena_printf(struct fgw_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));

#endif
