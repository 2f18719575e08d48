/* worker.c: see worker.h. */
#include "piece/worker.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "event/fiber.h"

enum { LOWEST_PRIORITY = 19 };

struct fgw_piece_worker {
    struct fgw_storage *storage;
    const char *data_dir;
    struct fgw_piece_export options;
    char *to; /* the options' */
    pthread_t thread;
    bool joinable; /* whoever starts or frees */
    struct {
        pthread_mutex_t mutex;
        bool running;
        bool stop;
        uint64_t group;
        struct fgw_piece_progress progress;
        json_t *pieces;
        enum fgw_err failed;
        char message[sizeof((struct fgw_error *)0)->message];
    } lock;
};

static void lock(struct fgw_piece_worker *worker)
{
    (void)pthread_mutex_lock(&worker->lock.mutex);
}

static void unlock(struct fgw_piece_worker *worker)
{
    (void)pthread_mutex_unlock(&worker->lock.mutex);
}

static bool on_progress(void *context, const struct fgw_piece_progress *progress)
{
    struct fgw_piece_worker *worker = context;
    lock(worker);
    worker->lock.progress = *progress;
    bool go_on = !worker->lock.stop;
    unlock(worker);
    return go_on;
}

static void say_result(const struct fgw_piece_worker *worker, enum fgw_err err,
                       const json_t *pieces, const struct fgw_error *error)
{
    unsigned long long group = worker->options.group;
    if (err == FGW_OK) {
        fgw_log_info("piece", "export of group %llu: pieces=%zu", group, json_array_size(pieces));
    } else {
        fgw_log_warn("piece", "export of group %llu broke off: %s", group,
                     fgw_error_message(error));
    }
}

static void run(void *arg)
{
    struct fgw_piece_worker *worker = arg;
    struct fgw_error error;
    json_t *pieces = json_array();
    fgw_error_init(&error);
    enum fgw_err err = fgw_piece_export(&worker->options, pieces, &error);
    if (err != FGW_OK && error.code == FGW_OK) {
        (void)fgw_error_set(&error, err, "%s", fgw_err_text(err));
    }
    say_result(worker, err, pieces, &error);
    lock(worker);
    json_decref(worker->lock.pieces);
    worker->lock.pieces = pieces;
    worker->lock.failed = err;
    memcpy(worker->lock.message, error.message, sizeof error.message);
    worker->lock.running = false;
    unlock(worker);
}

static void *thread_main(void *arg)
{
    (void)pthread_setname_np(pthread_self(), "piece");
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), LOWEST_PRIORITY); /* of this thread only */
    fgw_fiber_run_alone(run, arg);
    return NULL;
}

struct fgw_piece_worker *fgw_piece_worker_new(struct fgw_storage *storage, const char *data_dir)
{
    struct fgw_piece_worker *worker = fgw_xcalloc(1, sizeof *worker);
    worker->storage = storage;
    worker->data_dir = data_dir;
    worker->lock.pieces = json_array();
    (void)pthread_mutex_init(&worker->lock.mutex, NULL);
    return worker;
}

/* No export runs: its thread has ended or is about to. */
static void join(struct fgw_piece_worker *worker)
{
    if (worker->joinable) {
        (void)pthread_join(worker->thread, NULL);
        worker->joinable = false;
    }
}

void fgw_piece_worker_free(struct fgw_piece_worker *worker)
{
    if (worker == NULL) {
        return;
    }
    fgw_piece_worker_cancel(worker);
    join(worker);
    json_decref(worker->lock.pieces);
    (void)pthread_mutex_destroy(&worker->lock.mutex);
    fgw_xfree(worker->to);
    fgw_xfree(worker);
}

bool fgw_piece_worker_start(struct fgw_piece_worker *worker,
                            const struct fgw_piece_export *options)
{
    lock(worker);
    bool free_to_go = !worker->lock.running;
    if (free_to_go) {
        join(worker);
        fgw_xfree(worker->to);
        worker->to = options->to == NULL ? NULL : fgw_xstrdup(options->to);
        worker->options = *options;
        worker->options.storage = worker->storage;
        worker->options.data_dir = worker->data_dir;
        worker->options.to = worker->to;
        worker->options.on_progress = on_progress;
        worker->options.context = worker;
        json_decref(worker->lock.pieces);
        worker->lock.pieces = json_array();
        worker->lock.progress = (struct fgw_piece_progress){0};
        worker->lock.failed = FGW_OK;
        worker->lock.message[0] = '\0';
        worker->lock.group = options->group;
        worker->lock.stop = false;
        worker->lock.running = true;
        FGW_CHECK(pthread_create(&worker->thread, NULL, thread_main, worker) == 0);
        worker->joinable = true;
    }
    unlock(worker);
    return free_to_go;
}

void fgw_piece_worker_cancel(struct fgw_piece_worker *worker)
{
    lock(worker);
    worker->lock.stop = true;
    unlock(worker);
}

json_t *fgw_piece_worker_status(struct fgw_piece_worker *worker)
{
    lock(worker);
    json_t *status = json_pack(
        "{s:b,s:I,s:O,s:I,s:I,s:s?,s:s?}", "running", worker->lock.running, "group",
        (json_int_t)worker->lock.group, "pieces", worker->lock.pieces, "bytes",
        (json_int_t)worker->lock.progress.bytes, "bytes_total",
        (json_int_t)worker->lock.progress.bytes_total, "failed",
        worker->lock.failed == FGW_OK ? NULL : fgw_err_name(worker->lock.failed), "message",
        worker->lock.message[0] == '\0' ? NULL : worker->lock.message);
    unlock(worker);
    return status;
}

const char *fgw_piece_worker_data_dir(const struct fgw_piece_worker *worker)
{
    return worker->data_dir;
}
