/* server.h: what serve, proxy and kuri share: workers, listeners, health, metrics, access log, the
 * life of the process from start to SIGTERM. Listeners come up first and answer 503 until the engine
 * is attached, so that /livez and /readyz tell the truth from the first moment and a taken port is
 * found before any data is touched.
 */
#ifndef FGW_BIN_SERVER_H
#define FGW_BIN_SERVER_H

#include "bin/command.h"
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
/* Hooks for struct fgw_s3_options (internal, done); context is the server. */
bool fgw_server_internal(void *server, struct fgw_http_exchange *exchange);
void fgw_server_done(void *server, const struct fgw_s3_done *done);
/* From now on S3 requests are served. */
void fgw_server_attach(struct fgw_server *server, struct fgw_s3 *s3);
/* Serves the admin API on DATA/admin.sock (0600) until the server is freed; the admin outlives it.
 * Exit code as fgw_server_start. */
struct fgw_admin;
int fgw_server_start_admin(struct fgw_server *server, struct fgw_admin *admin);
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

#endif
