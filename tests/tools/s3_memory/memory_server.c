/* memory_server.c: the S3 engine over memory_store: for tests and measurements of the engine without
 * a disk. `serve` as fgw, with FGW_S3_LISTEN, FGW_ROOT_ACCESS_KEY, FGW_ROOT_SECRET_KEY, FGW_DOMAIN and
 * FGW_S3_STRICT_AWS of its settings, so that FGW_TEST_BINARY may name it; or with arguments: address,
 * root access key, root secret key. Prints "listening ADDRESS"; SIGTERM stops. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "event/workers.h"
#include "memory_store.h"
#include "s3/engine.h"

enum { STOP_GRACE_MS = 3000 };

static void on_signal(void *arg, int number)
{
    (void)number;
    fgw_loop_stop(arg);
}

static void run_until_signal(void)
{
    struct fgw_loop *loop = fgw_loop_new();
    struct fgw_signal *term = fgw_signal_new(loop, SIGTERM, on_signal, loop);
    fgw_loop_run(loop);
    fgw_signal_free(term);
    fgw_loop_free(loop);
}

static int serve(const char *address, struct fgw_s3 *s3, struct fgw_workers *workers)
{
    struct fgw_http_server_options options = {.addresses = &address,
                                              .address_count = 1,
                                              .workers = workers,
                                              .handler = fgw_s3_handle,
                                              .context = s3,
                                              .on_refused = fgw_s3_refused,
                                              .max_header_bytes = 32 * 1024,
                                              .header_timeout_ms = 30000,
                                              .first_byte_timeout_ms = 10000,
                                              .idle_timeout_ms = 75000,
                                              .min_body_rate_bytes_s = 1024,
                                              .max_connections = 4096,
                                              .conn_inflight_bytes = 4 * 1024 * 1024};
    struct fgw_http_server *server = NULL;
    struct fgw_error error;
    fgw_error_init(&error);
    if (fgw_http_server_start(&options, &server, &error) != FGW_OK) {
        (void)fprintf(stderr, "%s\n", fgw_error_message(&error));
        return 1;
    }
    (void)printf("listening %s\n", fgw_http_server_address(server, 0));
    (void)fflush(stdout);
    run_until_signal();
    fgw_http_server_stop(server, STOP_GRACE_MS);
    fgw_http_server_free(server);
    return 0;
}

/* All of the engine is ready from the start. */
static bool answer_internal(void *context, struct fgw_http_exchange *exchange)
{
    (void)context;
    return fgw_http_respond(exchange, 200, "text/plain", FGW_LIT("ready\n")) == FGW_OK;
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL) {
        (void)fprintf(stderr, "%s is needed\n", name);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 4) {
        (void)fprintf(stderr, "usage: %s serve | ADDRESS ACCESS_KEY SECRET_KEY\n", argv[0]);
        return 2;
    }
    bool by_settings = argc == 2;
    const char *strict = getenv("FGW_S3_STRICT_AWS");
    const char *domain = getenv("FGW_DOMAIN");
    const char *location = "default";
    struct fgw_meta *meta = memory_meta_new();
    struct fgw_blobs *blobs = memory_blobs_new();
    struct fgw_workers *workers = fgw_workers_start(1, NULL, NULL);
    struct fgw_s3_options options = {
        .meta = meta,
        .blobs = blobs,
        .workers = 1,
        .region = "us-east-1",
        .locations = &location,
        .location_count = 1,
        .domains = &domain,
        .domain_count = domain == NULL ? 0 : 1,
        .strict_aws = strict != NULL && strcmp(strict, "on") == 0,
        .root_access_key = by_settings ? setting("FGW_ROOT_ACCESS_KEY") : argv[2],
        .root_secret_key = by_settings ? setting("FGW_ROOT_SECRET_KEY") : argv[3],
        .internal = answer_internal,
    };
    struct fgw_s3 *s3 = fgw_s3_new(&options);
    int code = serve(by_settings ? setting("FGW_S3_LISTEN") : argv[1], s3, workers);
    fgw_workers_stop(workers);
    fgw_s3_free(s3);
    meta->ops->free(meta);
    memory_blobs_free(blobs);
    return code;
}
