/* sweep_memory.c: candidates of the sweeper in memory and in the file `sweep`
 * (docs/formats/data-directory.md); see sweep.h. */
#include "base/crc.h"
#include "storage/sweep.h"

enum { HEAD_SIZE = 64, ENTRY_SIZE = 32, VERSION = 1, FLAG_ALARM = 1, CAPACITY_MIN = 64 };

/* -- the table ----------------------------------------------------------------------------------- */

static size_t home_of(const struct fgw_sweep_table *table, const uint8_t *owner_id)
{
    return (size_t)fgw_get_u64le(owner_id) & (table->capacity - 1);
}

static size_t next_of(const struct fgw_sweep_table *table, size_t slot)
{
    return (slot + 1) & (table->capacity - 1);
}

static bool same(const struct fgw_sweep_candidate *a, const struct fgw_sweep_candidate *b)
{
    return memcmp(a->owner_id, b->owner_id, sizeof a->owner_id) == 0 &&
           memcmp(a->tag, b->tag, sizeof a->tag) == 0;
}

struct fgw_sweep_candidate *fgw_sweep_find(struct fgw_sweep_table *table,
                                           const struct fgw_sweep_candidate *like)
{
    if (table->capacity == 0) {
        return NULL;
    }
    for (size_t slot = home_of(table, like->owner_id); table->slots[slot].found_ms != 0;
         slot = next_of(table, slot)) {
        if (same(&table->slots[slot], like)) {
            return &table->slots[slot];
        }
    }
    return NULL;
}

static struct fgw_sweep_candidate *put(struct fgw_sweep_table *table,
                                       const struct fgw_sweep_candidate *candidate)
{
    size_t slot = home_of(table, candidate->owner_id);
    while (table->slots[slot].found_ms != 0) {
        slot = next_of(table, slot);
    }
    table->slots[slot] = *candidate;
    table->count++;
    return &table->slots[slot];
}

static void grow(struct fgw_sweep_table *table)
{
    struct fgw_sweep_table larger = {.capacity = table->capacity == 0 ? (size_t)CAPACITY_MIN
                                                                      : 2 * table->capacity};
    larger.slots = fgw_xcalloc(larger.capacity, sizeof *larger.slots);
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].found_ms != 0) {
            (void)put(&larger, &table->slots[i]);
        }
    }
    fgw_xfree(table->slots);
    *table = larger;
}

struct fgw_sweep_candidate *fgw_sweep_enter(struct fgw_sweep_table *table,
                                            const struct fgw_sweep_candidate *candidate)
{
    struct fgw_sweep_candidate *found = fgw_sweep_find(table, candidate);
    if (found != NULL || table->count >= FGW_SWEEP_CANDIDATES_MAX) {
        return found;
    }
    if (4 * (table->count + 1) > 3 * table->capacity) {
        grow(table);
    }
    return put(table, candidate);
}

/* What stands behind the hole moves up, so that no search ends at it too early. */
void fgw_sweep_erase(struct fgw_sweep_table *table, struct fgw_sweep_candidate *candidate)
{
    size_t hole = (size_t)(candidate - table->slots);
    size_t mask = table->capacity - 1;
    for (size_t slot = next_of(table, hole); table->slots[slot].found_ms != 0;
         slot = next_of(table, slot)) {
        size_t home = home_of(table, table->slots[slot].owner_id);
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            table->slots[hole] = table->slots[slot];
            hole = slot;
        }
    }
    table->slots[hole] = (struct fgw_sweep_candidate){0};
    table->count--;
}

void fgw_sweep_erase_owner(struct fgw_sweep_table *table,
                           const uint8_t owner_id[FGW_STORAGE_ID_SIZE])
{
    size_t slot = table->capacity == 0 ? 0 : home_of(table, owner_id);
    while (table->capacity > 0 && table->slots[slot].found_ms != 0) {
        if (memcmp(table->slots[slot].owner_id, owner_id, FGW_STORAGE_ID_SIZE) == 0) {
            fgw_sweep_erase(table, &table->slots[slot]); /* another one may stand here now */
        } else {
            slot = next_of(table, slot);
        }
    }
}

void fgw_sweep_prune(struct fgw_sweep_table *table, uint32_t pass)
{
    struct fgw_sweep_table kept = {0};
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].found_ms != 0 && table->slots[i].pass == pass) {
            (void)fgw_sweep_enter(&kept, &table->slots[i]);
        }
    }
    fgw_sweep_table_free(table);
    *table = kept;
}

void fgw_sweep_table_free(struct fgw_sweep_table *table)
{
    fgw_xfree(table->slots);
    *table = (struct fgw_sweep_table){0};
}

/* -- the file ------------------------------------------------------------------------------------ */

void fgw_sweep_encode(const struct fgw_sweep_memory *memory,
                      const uint8_t store_id[FGW_STORAGE_ID_SIZE], struct fgw_buf *out)
{
    uint8_t head[HEAD_SIZE] = "FGWSWEEP";
    uint8_t crc[4];
    fgw_put_u32le(head + 8, VERSION);
    fgw_put_u32le(head + 12, memory->alarm ? FLAG_ALARM : 0);
    memcpy(head + 16, store_id, FGW_STORAGE_ID_SIZE);
    fgw_put_u64le(head + 32, memory->last_ms);
    fgw_put_u64le(head + 40, memory->approved_ms);
    fgw_put_u64le(head + 48, memory->ownerless);
    fgw_put_u64le(head + 56, memory->table.count);
    fgw_buf_clear(out);
    (void)fgw_buf_append(out, fgw_bytes(head, sizeof head));
    for (size_t i = 0; i < memory->table.capacity; i++) {
        const struct fgw_sweep_candidate *candidate = &memory->table.slots[i];
        uint8_t entry[ENTRY_SIZE];
        if (candidate->found_ms != 0) {
            memcpy(entry, candidate->owner_id, FGW_STORAGE_ID_SIZE);
            memcpy(entry + 16, candidate->tag, FGW_SWEEP_TAG_SIZE);
            fgw_put_u64le(entry + 24, candidate->found_ms);
            (void)fgw_buf_append(out, fgw_bytes(entry, sizeof entry));
        }
    }
    fgw_put_u32le(crc, fgw_crc32c(0, fgw_buf_bytes(out)));
    (void)fgw_buf_append(out, fgw_bytes(crc, sizeof crc));
}

static bool whole(struct fgw_bytes file, const uint8_t *store_id)
{
    if (file.len < HEAD_SIZE + 4 || fgw_crc32c(0, fgw_bytes(file.ptr, file.len - 4)) !=
                                        fgw_get_u32le(file.ptr + file.len - 4)) {
        return false;
    }
    uint64_t count = fgw_get_u64le(file.ptr + 56);
    return memcmp(file.ptr + 16, store_id, FGW_STORAGE_ID_SIZE) == 0 &&
           count <= FGW_SWEEP_CANDIDATES_MAX && file.len == HEAD_SIZE + count * ENTRY_SIZE + 4;
}

enum fgw_err fgw_sweep_decode(struct fgw_bytes file, const uint8_t store_id[FGW_STORAGE_ID_SIZE],
                              struct fgw_sweep_memory *out_memory)
{
    *out_memory = (struct fgw_sweep_memory){0};
    if (file.len < 12 || memcmp(file.ptr, "FGWSWEEP", 8) != 0) {
        return FGW_ERR_CORRUPT;
    }
    if (fgw_get_u32le(file.ptr + 8) != VERSION) {
        return FGW_ERR_NEWER_VERSION;
    }
    if (!whole(file, store_id)) {
        return FGW_ERR_CORRUPT;
    }
    out_memory->alarm = (fgw_get_u32le(file.ptr + 12) & FLAG_ALARM) != 0;
    out_memory->last_ms = fgw_get_u64le(file.ptr + 32);
    out_memory->approved_ms = fgw_get_u64le(file.ptr + 40);
    out_memory->ownerless = fgw_get_u64le(file.ptr + 48);
    for (size_t at = HEAD_SIZE; at + ENTRY_SIZE < file.len; at += ENTRY_SIZE) {
        struct fgw_sweep_candidate candidate = {.found_ms = fgw_get_u64le(file.ptr + at + 24)};
        memcpy(candidate.owner_id, file.ptr + at, FGW_STORAGE_ID_SIZE);
        memcpy(candidate.tag, file.ptr + at + 16, FGW_SWEEP_TAG_SIZE);
        if (candidate.found_ms != 0) {
            (void)fgw_sweep_enter(&out_memory->table, &candidate);
        }
    }
    return FGW_OK;
}
