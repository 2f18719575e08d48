/* ops.c: see ops.h. */
#include "console/ops.h"

static void answer_live(struct fgw_http_exchange *exchange)
{
    (void)fgw_http_respond(exchange, 200, "text/plain", FGW_LIT("ok\n"));
}

static void answer_ready(const struct fgw_ops *ops, struct fgw_http_exchange *exchange)
{
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    bool ready = fgw_health_ready(ops->health);
    fgw_health_json(ops->health, &body);
    (void)fgw_http_respond(exchange, ready ? 200 : 503, "application/json", fgw_buf_bytes(&body));
    fgw_buf_deinit(&body);
}

static void answer_metrics(const struct fgw_ops *ops, struct fgw_http_exchange *exchange)
{
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    fgw_metrics_render(ops->metrics, &body);
    (void)fgw_buf_appendf(&body,
                          "# HELP fgw_info The build.\n# TYPE fgw_info gauge\n"
                          "fgw_info{version=\"%s\"} 1\n",
                          ops->version);
    (void)fgw_http_respond(exchange, 200, "text/plain; version=0.0.4", fgw_buf_bytes(&body));
    fgw_buf_deinit(&body);
}

static bool readable(struct fgw_http_exchange *exchange)
{
    const struct fgw_http_request *request = fgw_http_request(exchange);
    if (request->method == FGW_HTTP_GET || request->method == FGW_HTTP_HEAD) {
        return true;
    }
    (void)fgw_http_respond(exchange, 405, "text/plain", FGW_LIT("only GET and HEAD\n"));
    return false;
}

bool fgw_ops_internal(void *context, struct fgw_http_exchange *exchange)
{
    const struct fgw_ops *ops = context;
    struct fgw_bytes path = fgw_http_request(exchange)->raw_path;
    bool live = fgw_bytes_eq_str(path, "/_fgw/livez");
    bool ready = fgw_bytes_eq_str(path, "/_fgw/readyz");
    if (!live && !ready) {
        return false;
    }
    if (readable(exchange)) {
        if (live) {
            answer_live(exchange);
        } else {
            answer_ready(ops, exchange);
        }
    }
    return true;
}

/* The page may load nothing, not even from here, but what it asks of /api/. */
static void answer_page(struct fgw_http_exchange *exchange)
{
    struct fgw_bytes page = fgw_ops_page();
    fgw_http_response_start(exchange, 200, (int64_t)page.len);
    fgw_http_response_header(exchange, "Content-Type", FGW_LIT("text/html; charset=utf-8"));
    fgw_http_response_header(exchange, "Content-Security-Policy",
                             FGW_LIT("default-src 'none'; style-src 'unsafe-inline'; script-src "
                                     "'unsafe-inline'; connect-src 'self'; form-action 'none'; "
                                     "frame-ancestors 'none'; base-uri 'none'"));
    fgw_http_response_header(exchange, "X-Content-Type-Options", FGW_LIT("nosniff"));
    fgw_http_response_header(exchange, "Cache-Control", FGW_LIT("no-store"));
    (void)fgw_http_response_write(exchange, page);
    (void)fgw_http_response_end(exchange);
}

void fgw_ops_handle(void *context, struct fgw_http_exchange *exchange)
{
    struct fgw_ops *ops = context;
    struct fgw_bytes path = fgw_http_request(exchange)->raw_path;
    if (fgw_bytes_starts_with(path, FGW_LIT("/api/"))) {
        fgw_ops_api(ops, exchange);
        return;
    }
    if (!readable(exchange)) {
        return;
    }
    if (fgw_bytes_eq_str(path, "/livez")) {
        answer_live(exchange);
    } else if (fgw_bytes_eq_str(path, "/readyz")) {
        answer_ready(ops, exchange);
    } else if (fgw_bytes_eq_str(path, "/metrics")) {
        answer_metrics(ops, exchange);
    } else if (fgw_bytes_eq_str(path, "/")) {
        answer_page(exchange);
    } else {
        (void)fgw_http_respond(exchange, 404, "text/plain",
                               FGW_LIT("not found; there are /, /api/, /livez, /readyz and "
                                       "/metrics\n"));
    }
}
