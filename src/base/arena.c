/* arena.c: see arena.h. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"

struct fgw_arena_block {
    struct fgw_arena_block *older;
    size_t size;
    _Alignas(16) uint8_t data[];
};

enum { DEFAULT_BLOCK_SIZE = 16 * 1024, ALIGNMENT = 16 };

void fgw_arena_init(struct fgw_arena *arena, size_t block_size)
{
    *arena = (struct fgw_arena){.block_size = block_size == 0 ? DEFAULT_BLOCK_SIZE : block_size};
}

static void free_blocks(struct fgw_arena_block *block)
{
    while (block != NULL) {
        struct fgw_arena_block *older = block->older;
        fgw_xfree(block);
        block = older;
    }
}

void fgw_arena_deinit(struct fgw_arena *arena)
{
    free_blocks(arena->blocks);
    fgw_arena_init(arena, arena->block_size);
}

void fgw_arena_reset(struct fgw_arena *arena)
{
    struct fgw_arena_block *keep = NULL;
    struct fgw_arena_block *block = arena->blocks;
    while (block != NULL) {
        struct fgw_arena_block *older = block->older;
        if (keep == NULL && block->size == arena->block_size) {
            keep = block;
        } else {
            fgw_xfree(block);
        }
        block = older;
    }
    arena->blocks = keep;
    arena->used_bytes = 0;
    arena->next = NULL;
    arena->left = 0;
    if (keep != NULL) {
        keep->older = NULL;
        arena->next = keep->data;
        arena->left = keep->size;
    }
}

void *fgw_arena_alloc(struct fgw_arena *arena, size_t size)
{
    FGW_CHECK(size <= SIZE_MAX / 2);
    size_t rounded = size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    arena->used_bytes += rounded;
    if (rounded > arena->left) {
        size_t block_size = rounded > arena->block_size / 4 ? rounded : arena->block_size;
        struct fgw_arena_block *block = fgw_xmalloc(sizeof *block + block_size);
        block->size = block_size;
        if (block_size != arena->block_size && arena->blocks != NULL) {
            /* a block of its own goes behind the current one, which still has room */
            block->older = arena->blocks->older;
            arena->blocks->older = block;
            return block->data;
        }
        block->older = arena->blocks;
        arena->blocks = block;
        arena->next = block->data;
        arena->left = block_size;
    }
    void *result = arena->next;
    arena->next += rounded;
    arena->left -= rounded;
    return result;
}

void *fgw_arena_zalloc(struct fgw_arena *arena, size_t size)
{
    return memset(fgw_arena_alloc(arena, size), 0, size);
}

struct fgw_bytes fgw_arena_copy(struct fgw_arena *arena, struct fgw_bytes bytes)
{
    return fgw_bytes(fgw_arena_strdup(arena, bytes), bytes.len);
}

char *fgw_arena_strdup(struct fgw_arena *arena, struct fgw_bytes text)
{
    char *copy = fgw_arena_alloc(arena, text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

char *fgw_arena_printf(struct fgw_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int needed = vsnprintf(NULL, 0, format, args);
    va_end(args);
    FGW_CHECK(needed >= 0);
    char *text = fgw_arena_alloc(arena, (size_t)needed + 1);
    va_start(args, format);
    (void)vsnprintf(text, (size_t)needed + 1, format, args);
    va_end(args);
    return text;
}
