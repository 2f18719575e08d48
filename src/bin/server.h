/* server.h: what serve, proxy and kuri share: workers, listeners, health, metrics, access log, the
 * life of the process from start to SIGTERM. Listeners come up first and answer 503 until the engine
 * is attached, so that /livez and /readyz tell the truth from the first moment and a taken port is
 * found before any data is touched.
 */
#ifndef FGW_BIN_SERVER_H
#define FGW_BIN_SERVER_H

#include "bin/command.h"
#include "console/admin.h"
#include "console/health.h"
#include "console/metrics.h"
#include "event/workers.h"
#include "s3/engine.h"

struct fgw_server;

/* Exit code FGW_EXIT_OK, or what went wrong (printed already). */
int fgw_server_start(const struct fgw_config *config, const char *role, struct fgw_server **out);
struct fgw_health *fgw_server_health(struct fgw_server *server);
struct fgw_metrics *fgw_server_metrics(struct fgw_server *server);
struct fgw_workers *fgw_server_workers(struct fgw_server *server);
/* Paths below /_fgw/v1/ of the S3 listener (block API); before attach. */
void fgw_server_set_block_api(struct fgw_server *server, fgw_http_handler *handler, void *context);

struct fgw_server_engine {
    struct fgw_meta *meta;
    struct fgw_blobs *blobs;
    struct fgw_storage *storage; /* for calls on the admin socket; NULL: the role has none */
    const char *root_access_key;
    const char *root_secret_key;
    fgw_admin_status_fn *status; /* adds to the status document what the role knows */
    void *status_context;
    fgw_admin_nodes_fn *nodes; /* calls below /admin/nodes; NULL: no cluster */
    void *nodes_context;
    const struct fgw_admin_extra *admin_extras; /* live until the server is freed */
    size_t admin_extra_count;
    bool admin_socket; /* DATA/admin.sock (0600): for roles with a data directory */
};
/* Makes the S3 engine from the settings and serves S3 and the admin API from now on, until the
 * server has stopped; what the engine points to outlives that. Exit code as fgw_server_start;
 * *out_s3 is the caller's to free, afterwards. */
int fgw_server_start_engine(struct fgw_server *server, const struct fgw_server_engine *engine,
                            struct fgw_s3 **out_s3);
/* "http://127.0.0.1:8078" */
const char *fgw_server_endpoint(const struct fgw_server *server);
/* Runs until SIGTERM or SIGINT, then stops accepting and finishes requests in flight (30 s); a second
 * signal exits at once. Afterwards no handler runs any more. */
void fgw_server_run(struct fgw_server *server);
/* Stops listeners without having run: for a start that failed later. */
void fgw_server_stop(struct fgw_server *server);
/* After the engine is gone. Takes NULL. */
void fgw_server_free(struct fgw_server *server);
/* The exit code that goes with an error of opening something. */
int fgw_exit_of(enum fgw_err err);
/* Name of an extra of struct fgw_error that names the exit code itself. */
#define FGW_ERROR_EXIT_CODE "ExitCode"
int fgw_exit_of_error(enum fgw_err err, const struct fgw_error *error);
/* Prints what failed; its exit code. */
int fgw_exit_failed(enum fgw_err err, const struct fgw_error *error);

#endif
