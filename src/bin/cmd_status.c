/* cmd_status.c: `fgw status`: what a process says of itself and of its cluster; with --ready only
 * whether it can do its job (health checks of containers, scripts that wait). */
#include <stdio.h>
#include <string.h>

#include "bin/admin_client.h"

enum option { OPT_READY, OPT_JSON, OPT_COUNT };

struct status_verb {
    struct fgw_config config;
    struct fgw_config_option options[OPT_COUNT];
};

/* That of --admin, or the first ops listener, as reached from this machine. */
static const char *ops_address(struct fgw_arena *arena, const struct fgw_config *config)
{
    if (config->admin_url != NULL) {
        return fgw_admin_address(arena, config->admin_url);
    }
    if (config->ops_listen.count == 0) {
        return NULL;
    }
    const struct fgw_config_address *first = &config->ops_listen.items[0];
    const char *host = first->host;
    if (strcmp(host, "0.0.0.0") == 0) {
        host = "127.0.0.1";
    } else if (strcmp(host, "::") == 0) {
        host = "::1";
    }
    return fgw_arena_printf(arena, strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host,
                            (unsigned)first->port);
}

static int print_ready(int status, const json_t *answer, const char *address, bool json)
{
    size_t index;
    const json_t *reason;
    if (status == 0) {
        (void)fprintf(stderr, "fgw: error: nothing answers at %s\n", address);
        return FGW_EXIT_NOT_READY;
    }
    if (json) {
        (void)json_dumpf(answer, stdout, JSON_INDENT(2));
        (void)printf("\n");
    } else {
        (void)printf("%s\n", status == 200 ? "ready" : "not ready");
        json_array_foreach(json_object_get(answer, "reasons"), index, reason)
        {
            const char *what = json_string_value(json_object_get(reason, "what"));
            const char *why = json_string_value(json_object_get(reason, "why"));
            (void)printf("  %s: %s\n", what == NULL ? "?" : what, why == NULL ? "?" : why);
        }
    }
    (void)fflush(stdout);
    return status == 200 ? FGW_EXIT_OK : FGW_EXIT_NOT_READY;
}

static int ask_ready(struct status_verb *verb)
{
    struct fgw_arena arena;
    json_t *answer = NULL;
    fgw_arena_init(&arena, 0);
    int exit_code = FGW_EXIT_USAGE;
    const char *address = ops_address(&arena, &verb->config);
    if (address == NULL) {
        (void)fprintf(stderr,
                      "fgw: error: FGW_OPS_LISTEN is empty, or --admin no http://HOST:PORT: "
                      "nothing to ask\n");
    } else {
        int status = fgw_admin_ask_ops(address, "/readyz", &answer);
        exit_code = print_ready(status, answer, address, verb->options[OPT_JSON].value != NULL);
    }
    json_decref(answer);
    fgw_arena_deinit(&arena);
    return exit_code;
}

static void print_warnings(const json_t *answer)
{
    size_t index;
    const json_t *warning;
    json_array_foreach(json_object_get(answer, "warnings"), index, warning)
    {
        (void)printf("warning: %s\n", json_string_value(warning));
    }
}

static int ask_status(struct status_verb *verb)
{
    static const char *const COLUMNS[] = {
        "version",     "role",          "node_id",       "ready",        "endpoint",
        "metadata",    "groups",        "live_bytes",    "dead_bytes",   "free_bytes",
        "total_bytes", "read_only",     "below_reserve", "epoch",        "map_version",
        "sets",        "sets_complete", "sets_changing", "sets_waiting", "replicas_possible",
        NULL};
    static const char *const NODES[] = {"node",   "state",        "zone",        "address",
                                        "sets",   "stored_bytes", "free_bytes",  "silent_s",
                                        "looked", "copied",       "not_settled", NULL};
    bool json = verb->options[OPT_JSON].value != NULL;
    struct fgw_admin_call call = {.method = "GET", .path = "/admin/status"};
    json_t *answer = NULL;
    int exit_code = fgw_admin_call(&verb->config, &call, &answer);
    if (exit_code == FGW_EXIT_OK) {
        exit_code = fgw_admin_print(answer, NULL, COLUMNS, json);
    }
    if (exit_code == FGW_EXIT_OK && !json && json_object_get(answer, "nodes") != NULL) {
        (void)printf("\n");
        exit_code = fgw_admin_print(answer, "nodes", NODES, false);
        print_warnings(answer);
    }
    json_decref(answer);
    return exit_code;
}

int fgw_cmd_status(const struct fgw_command *command)
{
    struct status_verb verb = {
        .options = {
            [OPT_READY] =
                {"ready", false, NULL,
                 "only ask /readyz of FGW_OPS_LISTEN (or --admin); exit 0 when ready, else 3"},
            [OPT_JSON] = {"json", false, NULL, "one JSON document"}}};
    struct fgw_config_input input = {.options = verb.options, .option_count = OPT_COUNT};
    if (fgw_command_config(command, &input, &verb.config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    int exit_code = verb.options[OPT_READY].value != NULL ? ask_ready(&verb) : ask_status(&verb);
    fgw_config_deinit(&verb.config);
    return exit_code;
}
