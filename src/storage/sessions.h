/* sessions.h: which blobs are being read. A blob of more than one block that a session names keeps
 * its list although its last hold has gone (design/storage.md section 5). A blob of one block needs
 * none: its bytes stay readable through the open group file. Any thread. */
#ifndef FGW_STORAGE_SESSIONS_H
#define FGW_STORAGE_SESSIONS_H

#include <pthread.h>

#include "base/digest.h"
#include "base/list.h"

enum { FGW_SESSION_BUCKETS = 64 };

struct fgw_sessions {
    struct {
        pthread_mutex_t mutex;
        struct fgw_list buckets[FGW_SESSION_BUCKETS];
    } lock;
};

/* Lives in the reader. */
struct fgw_session {
    struct fgw_list node;
    uint8_t root[FGW_SHA256_SIZE];
};

void fgw_sessions_init(struct fgw_sessions *sessions);
/* No session may be open. */
void fgw_sessions_deinit(struct fgw_sessions *sessions);
void fgw_session_open(struct fgw_sessions *sessions, struct fgw_session *session,
                      const uint8_t root[FGW_SHA256_SIZE]);
void fgw_session_close(struct fgw_sessions *sessions, struct fgw_session *session);
bool fgw_sessions_name(struct fgw_sessions *sessions, const uint8_t root[FGW_SHA256_SIZE]);

#endif
