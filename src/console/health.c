/* health.c: see health.h. */
#include "console/health.h"

#include <pthread.h>
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

enum { REASONS_MAX = 12 };

struct reason {
    const char *what;
    bool bad;
    uint64_t since_ms; /* boot clock */
    char why[400];
    json_t *more; /* NULL: nothing */
};

struct fgw_health {
    const char *role;
    struct {
        pthread_rwlock_t lock;
        fgw_health_look *fn;
        void *context;
    } look;
    struct {
        pthread_mutex_t mutex;
        struct reason reasons[REASONS_MAX];
        size_t count;
    } lock;
};

struct fgw_health *fgw_health_new(const char *role)
{
    struct fgw_health *health = fgw_xcalloc(1, sizeof *health);
    health->role = role;
    (void)pthread_mutex_init(&health->lock.mutex, NULL);
    (void)pthread_rwlock_init(&health->look.lock, NULL);
    return health;
}

void fgw_health_free(struct fgw_health *health)
{
    if (health != NULL) {
        for (size_t i = 0; i < health->lock.count; i++) {
            json_decref(health->lock.reasons[i].more);
        }
        (void)pthread_mutex_destroy(&health->lock.mutex);
        (void)pthread_rwlock_destroy(&health->look.lock);
        fgw_xfree(health);
    }
}

static struct reason *find_reason(struct fgw_health *health, const char *what)
{
    for (size_t i = 0; i < health->lock.count; i++) {
        if (strcmp(health->lock.reasons[i].what, what) == 0) {
            return &health->lock.reasons[i];
        }
    }
    FGW_CHECK(health->lock.count < REASONS_MAX);
    struct reason *added = &health->lock.reasons[health->lock.count++];
    *added = (struct reason){.what = what};
    return added;
}

void fgw_health_set(struct fgw_health *health, const char *what, const char *text_or_null)
{
    fgw_health_set_more(health, what, text_or_null, NULL);
}

void fgw_health_set_more(struct fgw_health *health, const char *what, const char *text_or_null,
                         json_t *more)
{
    (void)pthread_mutex_lock(&health->lock.mutex);
    struct reason *reason = find_reason(health, what);
    bool bad = text_or_null != NULL;
    bool changed = bad != reason->bad || (bad && strcmp(reason->why, text_or_null) != 0);
    uint64_t now_ms = fgw_clock_boot_ms();
    uint64_t since_ms = reason->since_ms;
    if (bad != reason->bad) {
        reason->since_ms = now_ms;
    }
    reason->bad = bad;
    json_decref(reason->more);
    reason->more = more;
    if (bad) {
        (void)snprintf(reason->why, sizeof reason->why, "%s", text_or_null);
    }
    (void)pthread_mutex_unlock(&health->lock.mutex);
    if (changed && bad) {
        fgw_log_warn("health", "not ready: %s: %s", what, text_or_null);
    } else if (changed) {
        fgw_log_info("health", "%s is good again after %llu ms", what,
                     (unsigned long long)(now_ms - since_ms));
    }
}

void fgw_health_set_look(struct fgw_health *health, fgw_health_look *look, void *context)
{
    (void)pthread_rwlock_wrlock(&health->look.lock);
    health->look.fn = look;
    health->look.context = context;
    (void)pthread_rwlock_unlock(&health->look.lock);
}

static void look(struct fgw_health *health)
{
    (void)pthread_rwlock_rdlock(&health->look.lock);
    if (health->look.fn != NULL) {
        health->look.fn(health->look.context, health);
    }
    (void)pthread_rwlock_unlock(&health->look.lock);
}

bool fgw_health_ready(struct fgw_health *health)
{
    bool ready = true;
    look(health);
    (void)pthread_mutex_lock(&health->lock.mutex);
    for (size_t i = 0; i < health->lock.count; i++) {
        ready = ready && !health->lock.reasons[i].bad;
    }
    (void)pthread_mutex_unlock(&health->lock.mutex);
    return ready;
}

void fgw_health_json(struct fgw_health *health, struct fgw_buf *out)
{
    json_t *reasons = json_array();
    look(health);
    uint64_t now_ms = fgw_clock_boot_ms();
    (void)pthread_mutex_lock(&health->lock.mutex);
    for (size_t i = 0; i < health->lock.count; i++) {
        const struct reason *reason = &health->lock.reasons[i];
        if (reason->bad) {
            json_t *one = json_pack("{s:s,s:s,s:I}", "what", reason->what, "why", reason->why,
                                    "since_ms", (json_int_t)(now_ms - reason->since_ms));
            (void)json_object_update_missing(one, reason->more);
            (void)json_array_append_new(reasons, one);
        }
    }
    (void)pthread_mutex_unlock(&health->lock.mutex);
    json_t *all = json_pack("{s:b,s:s,s:o}", "ready", json_array_size(reasons) == 0, "role",
                            health->role, "reasons", reasons);
    char *text = json_dumps(all, JSON_COMPACT);
    (void)fgw_buf_append_str(out, text == NULL ? "{}" : text);
    (void)fgw_buf_append_byte(out, '\n');
    fgw_xfree(text);
    json_decref(all);
}
