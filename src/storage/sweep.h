/* sweep.h: the sweeper of holds that no row names (design/storage.md section 5).
 *
 * A pass asks the metadata about every hold. What it says is absent becomes a candidate; a candidate
 * that a pass at least FGW_SWEEP_GRACE of running time later finds absent again is released. Never:
 * holds whose owner has a writer open in this process, and holds taken (again) or renewed less than
 * two hours of running time ago: taking one strikes the owner off the candidates, and no candidate
 * is due before two hours have passed, nor before two hours after opening, as renewals are not
 * logged. More than max(1,000, 0.1 %) without an owner: nothing is freed before somebody approves.
 */
#ifndef FGW_STORAGE_SWEEP_H
#define FGW_STORAGE_SWEEP_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "storage/storage.h"

enum {
    FGW_SWEEP_TAG_SIZE = 8,
    FGW_SWEEP_CANDIDATES_MAX = 1000 * 1000 /* 40 MB; more are found when these are gone */
};

struct fgw_sweep_candidate {
    uint8_t owner_id[FGW_STORAGE_ID_SIZE];
    uint8_t tag[FGW_SWEEP_TAG_SIZE]; /* of extent and root */
    uint64_t found_ms;               /* running time; 0: the slot is free */
    uint32_t pass;                   /* that found it last */
};

/* Candidates by owner: a hash table with linear probing; owner ids are random. */
struct fgw_sweep_table {
    struct fgw_sweep_candidate *slots;
    size_t capacity; /* power of two, 0: none yet */
    size_t count;
};
/* NULL when absent. */
struct fgw_sweep_candidate *fgw_sweep_find(struct fgw_sweep_table *table,
                                           const struct fgw_sweep_candidate *like);
/* Entered, or found and left as it was; NULL: the table is full. */
struct fgw_sweep_candidate *fgw_sweep_enter(struct fgw_sweep_table *table,
                                            const struct fgw_sweep_candidate *candidate);
void fgw_sweep_erase(struct fgw_sweep_table *table, struct fgw_sweep_candidate *candidate);
void fgw_sweep_erase_owner(struct fgw_sweep_table *table,
                           const uint8_t owner_id[FGW_STORAGE_ID_SIZE]);
/* All that were not found by `pass`. */
void fgw_sweep_prune(struct fgw_sweep_table *table, uint32_t pass);
void fgw_sweep_table_free(struct fgw_sweep_table *table);

/* What outlives the process. */
struct fgw_sweep_memory {
    struct fgw_sweep_table table;
    bool alarm;
    uint64_t last_ms;     /* running time at the end of the last pass, 0: none */
    uint64_t approved_ms; /* running time of the last approval */
    uint64_t ownerless;   /* in the last pass */
};
void fgw_sweep_encode(const struct fgw_sweep_memory *memory,
                      const uint8_t store_id[FGW_STORAGE_ID_SIZE], struct fgw_buf *out);
/* FGW_ERR_CORRUPT (also: of another store), FGW_ERR_NEWER_VERSION; the memory is empty then. */
enum fgw_err fgw_sweep_decode(struct fgw_bytes file, const uint8_t store_id[FGW_STORAGE_ID_SIZE],
                              struct fgw_sweep_memory *out_memory) FGW_MUST_CHECK;

/* An owner with a writer open; lives in the writer. */
struct fgw_sweep_writer {
    struct fgw_list node;
    const uint8_t *owner_id;
};

struct fgw_sweep {
    struct {
        pthread_mutex_t mutex;
        struct fgw_sweep_memory memory;
        struct fgw_list writers;
        const uint8_t *asking; /* owner the metadata is being asked about; NULL: none */
        bool taken_meanwhile;  /* that owner took or renewed a hold since */
        struct fgw_storage_sweep_status status;
    } lock;
    _Atomic bool watching; /* there are candidates, or one is asked about */
    _Atomic bool wanted;   /* a pass now */
    _Atomic bool busy;     /* one is running */
    _Atomic uint64_t free_nothing_until_ms;
    uint32_t pass; /* of whoever is busy */
};

void fgw_sweep_init(struct fgw_sweep *sweep);
void fgw_sweep_deinit(struct fgw_sweep *sweep);
/* While opening: what an earlier process remembered. */
void fgw_sweep_load(struct fgw_storage *storage);

/* From any thread: the owner takes, or relies on, a hold. */
void fgw_sweep_note_taken(struct fgw_storage *storage, const uint8_t owner_id[FGW_STORAGE_ID_SIZE]);
void fgw_sweep_note_writer(struct fgw_storage *storage, struct fgw_sweep_writer *writer,
                           const uint8_t owner_id[FGW_STORAGE_ID_SIZE]);
void fgw_sweep_forget_writer(struct fgw_storage *storage, struct fgw_sweep_writer *writer);

/* A job of care: a pass when one is due or wanted. Returns when to call again. */
uint64_t fgw_sweep_care(struct fgw_storage *storage, fgw_storage_live_fn *live, void *context);

#endif
