/* recover.h: what opening a directory finds in groups/, and replay of the log behind the index
 * (docs/formats/group.md; design/storage.md section 4). Used while opening only, one thread. */
#ifndef FGW_STORAGE_RECOVER_H
#define FGW_STORAGE_RECOVER_H

#include "storage/apply.h"
#include "storage/datadir.h"
#include "storage/items.h"
#include "storage/log.h"
#include "storage/open_progress.h"

struct fgw_found_group {
    uint64_t id;
    bool is_log;
    bool readable;      /* its opening record is authentic */
    uint64_t first_end; /* behind the opening record */
    uint64_t size;
    struct fgw_item_predecessor predecessor; /* of a log group */
    bool in_chain;
};

struct fgw_found_groups {
    struct fgw_found_group *groups; /* by id */
    size_t count;
    uint64_t last_id; /* highest, 0 when there is none */
};

/* Reads all opening records. */
enum fgw_err fgw_found_groups_read(struct fgw_found_groups *found, struct fgw_datadir *dir,
                                   struct fgw_record_opener *opener,
                                   struct fgw_error *error) FGW_MUST_CHECK;
void fgw_found_groups_free(struct fgw_found_groups *found);
/* Compares the files with what the index says of them; says what is missing or too short. Returns the
 * number of such files: reads of their blocks will answer "damaged", the rest is served. */
uint64_t fgw_found_groups_check(const struct fgw_found_groups *found, struct fgw_datadir *dir,
                                struct fgw_kv *kv);
/* NULL when absent. */
struct fgw_found_group *fgw_found_group(const struct fgw_found_groups *found, uint64_t id);

struct fgw_replay {
    struct fgw_datadir *dir;
    struct fgw_record_opener *opener;
    struct fgw_found_groups *found;
    struct fgw_apply *apply;
    struct fgw_open_progress *progress;
    bool skip_damaged;
    /* results */
    struct fgw_log_position position; /* fd open for writing */
    uint64_t replayed;                /* batches */
    bool index_ahead; /* with FGW_ERR_CORRUPT: the index knows batches that the log lacks */
    uint64_t damages; /* places passed over (skip_damaged), each said in the log */
    uint64_t lost;    /* batches in them */
};
/* Applies everything the log holds behind apply->applied and finds where it goes on. A torn tail is
 * cut. FGW_ERR_CORRUPT names file and offset. */
enum fgw_err fgw_replay_log(struct fgw_replay *replay, struct fgw_error *error) FGW_MUST_CHECK;

#endif
