/* admin_storage.h: the calls of the admin API (admin.h) that concern the data directory:
 *   POST /admin/backup {"to"}   begins one; where no care runs it is made before the answer
 *   GET  /admin/backup          {"state":"none|running|done|failed","to","batch","files",
 *                               "files_total","bytes","bytes_total","damaged","error","message"}
 *   GET  /admin/groups          {"groups":[{"id","kind":"log|bulk","state":"writing|sealed|damaged",
 *                               "end","file_bytes","live_blocks","live_bytes","dead_bytes"}]}
 *   GET  /admin/groups/ID
 *   POST /admin/groups/ID/seal
 *   POST /admin/groups/ID/verify {"offset"}   a stretch of the file: {"offset","sections","done",
 *                               "damaged"}
 */
#ifndef FGW_CONSOLE_ADMIN_STORAGE_H
#define FGW_CONSOLE_ADMIN_STORAGE_H

#include <jansson.h>

#include "storage/storage.h"

struct fgw_admin_storage_call {
    const char *method;
    struct fgw_bytes kind; /* behind /admin/ */
    struct fgw_bytes name; /* decoded; empty: none */
    struct fgw_bytes verb;
    const json_t *body; /* may be NULL */
};
/* 0: no call of this file; else the HTTP status, *out_answer a new reference. Runs in a fiber. */
int fgw_admin_storage_execute(struct fgw_storage *storage,
                              const struct fgw_admin_storage_call *call, json_t **out_answer);

#endif
