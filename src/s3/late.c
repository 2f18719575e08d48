/* late.c: see late.h. */
#include "s3/late.h"

#include "event/fiber.h"
#include "s3/answer.h"
#include "s3/xml_write.h"

enum { PATIENCE_MS = 5000 };

struct job {
    struct fgw_s3_request *request;
    fgw_s3_late_work *work;
    void *context;
    struct fgw_wait wait;
    enum fgw_err err;
};

void fgw_s3_late_begin(struct fgw_s3_late *late, struct fgw_s3_request *request)
{
    late->request = request;
    late->outer = request->arena;
    late->extra_header_count = request->extra_header_count;
    fgw_arena_init(&late->arena, 0);
    request->arena = &late->arena;
}

void fgw_s3_late_end(struct fgw_s3_late *late)
{
    late->request->arena = late->outer;
    late->request->extra_header_count = late->extra_header_count;
    fgw_arena_deinit(&late->arena);
}

static void run_job(void *arg)
{
    struct job *job = arg;
    job->err = job->work(job->request, job->context);
    fgw_wait_signal(&job->wait);
}

/* A broken connection shows again at the answer; the work is finished all the same. */
static void keep_alive(struct fgw_s3_request *request)
{
    if (!request->late) {
        struct fgw_buf declaration;
        fgw_buf_init(&declaration, 0);
        fgw_xml_begin(&declaration);
        request->late = true;
        fgw_s3_start(request, 200, FGW_HTTP_LENGTH_UNKNOWN);
        fgw_http_response_header(request->exchange, "Content-Type", FGW_LIT("application/xml"));
        (void)fgw_http_response_write(request->exchange, fgw_buf_bytes(&declaration));
        fgw_buf_deinit(&declaration);
    }
    (void)fgw_http_response_write(request->exchange, FGW_LIT(" "));
    (void)fgw_http_response_flush(request->exchange);
}

enum fgw_err fgw_s3_late_run(struct fgw_s3_late *late, fgw_s3_late_work *work, void *context)
{
    struct fgw_loop *loop = fgw_loop_current();
    struct job job = {.request = late->request, .work = work, .context = context};
    fgw_wait_init(&job.wait, 1);
    fgw_fiber_spawn(loop, run_job, &job);
    while (fgw_wait_until(&job.wait, fgw_loop_now_ms(loop) + PATIENCE_MS) != FGW_OK) {
        keep_alive(late->request);
    }
    return job.err;
}
