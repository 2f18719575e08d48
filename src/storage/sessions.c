/* sessions.c: see sessions.h. */
#include "storage/sessions.h"

#include "base/bytes.h"
#include "base/check.h"

static struct fgw_list *bucket_of(struct fgw_sessions *sessions, const uint8_t *root)
{
    return &sessions->lock.buckets[root[0] % FGW_SESSION_BUCKETS];
}

void fgw_sessions_init(struct fgw_sessions *sessions)
{
    (void)pthread_mutex_init(&sessions->lock.mutex, NULL);
    for (size_t i = 0; i < FGW_SESSION_BUCKETS; i++) {
        fgw_list_init(&sessions->lock.buckets[i]);
    }
}

void fgw_sessions_deinit(struct fgw_sessions *sessions)
{
    for (size_t i = 0; i < FGW_SESSION_BUCKETS; i++) {
        FGW_CHECK(fgw_list_empty(&sessions->lock.buckets[i]));
    }
    (void)pthread_mutex_destroy(&sessions->lock.mutex);
}

void fgw_session_open(struct fgw_sessions *sessions, struct fgw_session *session,
                      const uint8_t root[FGW_SHA256_SIZE])
{
    memcpy(session->root, root, sizeof session->root);
    (void)pthread_mutex_lock(&sessions->lock.mutex);
    fgw_list_push_back(bucket_of(sessions, root), &session->node);
    (void)pthread_mutex_unlock(&sessions->lock.mutex);
}

void fgw_session_close(struct fgw_sessions *sessions, struct fgw_session *session)
{
    (void)pthread_mutex_lock(&sessions->lock.mutex);
    fgw_list_remove(&session->node);
    (void)pthread_mutex_unlock(&sessions->lock.mutex);
}

bool fgw_sessions_name(struct fgw_sessions *sessions, const uint8_t root[FGW_SHA256_SIZE])
{
    bool found = false;
    (void)pthread_mutex_lock(&sessions->lock.mutex);
    struct fgw_list *bucket = bucket_of(sessions, root);
    for (struct fgw_list *node = bucket->next; node != bucket && !found; node = node->next) {
        struct fgw_session *session = FGW_CONTAINER_OF(node, struct fgw_session, node);
        found = memcmp(session->root, root, sizeof session->root) == 0;
    }
    (void)pthread_mutex_unlock(&sessions->lock.mutex);
    return found;
}
