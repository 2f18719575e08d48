/* cmd_sweep.c: `fgw sweep`: a pass of the sweeper now: in the process that runs, or, when none does
 * and the names are in the directory, in this one. */
#include <stdio.h>

#include "bin/admin_client.h"
#include "bin/data_verb.h"
#include "bin/server.h"
#include "bin/store_calls.h"
#include "event/fiber.h"
#include "meta/rocks/rocks.h"

enum { POLL_MS = 300 };
enum option { OPT_APPROVE, OPT_JSON, OPT_COUNT };

struct sweep {
    struct fgw_data_verb verb;
    struct fgw_config_option options[OPT_COUNT];
    json_t *answer;
    int exit_code;
};

static uint64_t number(const json_t *answer, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(answer, name));
}

static int print_text(const json_t *answer)
{
    const char *failed = json_string_value(json_object_get(answer, "failed"));
    (void)printf("%llu holds looked at: %llu without an owner, %llu freed, %llu wait for a second "
                 "look\n",
                 (unsigned long long)number(answer, "holds"),
                 (unsigned long long)number(answer, "ownerless"),
                 (unsigned long long)number(answer, "freed"),
                 (unsigned long long)number(answer, "waiting"));
    if (failed != NULL) {
        (void)fprintf(stderr, "fgw: error: the sweep broke off: %s\n", failed);
        return FGW_EXIT_INTERNAL;
    }
    if (json_is_true(json_object_get(answer, "alarm"))) {
        (void)fprintf(
            stderr,
            "fgw: error: more than %llu holds have no owner, so nothing was freed. If the "
            "database is not an older state than this directory, let them go with `fgw "
            "sweep --approve`.\n",
            (unsigned long long)number(answer, "limit"));
        return FGW_EXIT_DECISION;
    }
    return FGW_EXIT_OK;
}

static int print_json(const json_t *answer)
{
    (void)json_dumpf(answer, stdout, JSON_INDENT(2));
    (void)printf("\n");
    if (!json_is_null(json_object_get(answer, "failed"))) {
        return FGW_EXIT_INTERNAL;
    }
    return json_is_true(json_object_get(answer, "alarm")) ? FGW_EXIT_DECISION : FGW_EXIT_OK;
}

/* -- in the process that runs -------------------------------------------------------------------- */

static int ask(struct sweep *sweep, const char *method, const json_t *body)
{
    struct fgw_admin_call call = {method, "/admin/sweep", body};
    json_decref(sweep->answer);
    sweep->answer = NULL;
    return fgw_admin_ask_process(&sweep->verb.config, &call, &sweep->answer);
}

/* False when no process answers. */
static bool ask_process(struct sweep *sweep)
{
    json_t *body = json_pack("{s:b}", "approve", sweep->options[OPT_APPROVE].value != NULL);
    int status = ask(sweep, "POST", body);
    json_decref(body);
    while (status >= 200 && status <= 299 &&
           json_is_true(json_object_get(sweep->answer, "running"))) {
        fgw_fiber_sleep_ms(POLL_MS);
        status = ask(sweep, "GET", NULL);
        if (status == 0) {
            (void)fprintf(stderr, "fgw: error: the process ended\n");
            sweep->exit_code = FGW_EXIT_INTERNAL;
            return true;
        }
    }
    if (status > 299) {
        const char *message = json_string_value(json_object_get(sweep->answer, "message"));
        (void)fprintf(stderr, "fgw: error: %s\n", message == NULL ? "refused" : message);
        sweep->exit_code = FGW_EXIT_INTERNAL;
    }
    return status != 0;
}

/* -- in this one --------------------------------------------------------------------------------- */

static enum fgw_err blob_live(void *context, const struct fgw_storage_owner *owner,
                              const struct fgw_cid *root, enum fgw_storage_liveness *out_liveness)
{
    struct fgw_meta *meta = context;
    struct fgw_blob_live live = {0};
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    enum fgw_err err = meta->ops->blob_live(meta, &arena, owner, root, &live);
    *out_liveness = live.live ? FGW_STORAGE_HERE : FGW_STORAGE_ABSENT;
    fgw_arena_deinit(&arena);
    return err;
}

static void sweep_directly(struct sweep *sweep)
{
    if (sweep->verb.config.meta == FGW_CONFIG_META_CQL) {
        (void)fprintf(stderr,
                      "fgw: error: no process runs on %s, and the names of its objects are "
                      "in a database: start it, then sweep\n",
                      sweep->verb.config.data_dir);
        sweep->exit_code = FGW_EXIT_NOT_READY;
        return;
    }
    sweep->exit_code = fgw_data_verb_open(&sweep->verb);
    if (sweep->exit_code != FGW_EXIT_OK) {
        return;
    }
    struct fgw_storage *store = sweep->verb.store;
    struct fgw_meta *meta = fgw_meta_rocks_new(store);
    if (sweep->options[OPT_APPROVE].value != NULL) {
        fgw_storage_sweep_approve(store);
    }
    (void)!fgw_storage_sweep(store, blob_live, meta); /* what went wrong stands in the status */
    sweep->answer = fgw_store_sweep_json(store);
    meta->ops->free(meta);
}

static void run(void *arg)
{
    struct sweep *sweep = arg;
    if (!ask_process(sweep)) {
        sweep_directly(sweep);
    }
}

int fgw_cmd_sweep(const struct fgw_command *command)
{
    struct sweep sweep = {
        .options = {[OPT_APPROVE] = {"approve", false, NULL,
                                     "what was found without an owner so far may be freed"},
                    [OPT_JSON] = {"json", false, NULL, "one JSON document"}}};
    struct fgw_config_input input = {.options = sweep.options, .option_count = OPT_COUNT};
    int exit_code = fgw_data_verb_begin(command, &input, &sweep.verb);
    if (exit_code != FGW_EXIT_OK) {
        return exit_code;
    }
    fgw_fiber_run_alone(run, &sweep);
    if (sweep.exit_code == FGW_EXIT_OK) {
        sweep.exit_code = sweep.options[OPT_JSON].value != NULL ? print_json(sweep.answer)
                                                                : print_text(sweep.answer);
    }
    json_decref(sweep.answer);
    fgw_data_verb_end(&sweep.verb);
    return sweep.exit_code;
}
