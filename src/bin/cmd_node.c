/* cmd_node.c: `fgw node list|adopt|drain|remove|rebalance|reconcile`: through a running process of the
 * cluster (--admin, or the admin socket of the data directory), else on the database itself with
 * the settings FGW_CQL_*. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/encode.h"
#include "bin/admin_client.h"
#include "bin/cql_settings.h"
#include "bin/node_calls.h"
#include "bin/server.h"
#include "event/fiber.h"

enum option { OPT_ALL, OPT_CANCEL, OPT_FORCE, OPT_JSON, OPT_COUNT };
enum { LOOK_MS = FGW_CLUSTER_BEAT_MS + 1500, CONNECT_MS = 10000 };

struct node_verb {
    struct fgw_config config;
    struct fgw_config_option options[OPT_COUNT];
    const char *words[2];
    size_t word_count;
    struct fgw_arena arena;
};

static const struct fgw_config_option OPTIONS[OPT_COUNT] = {
    [OPT_ALL] = {"all", false, NULL, "reconcile: every hold, and whether it is named"},
    [OPT_CANCEL] = {"cancel", false, NULL, "drain: it takes part again"},
    [OPT_FORCE] = {"force", false, NULL, "remove: also a store that is a member of sets"},
    [OPT_JSON] = {"json", false, NULL, "one JSON document"},
};

/* -- on the database itself ---------------------------------------------------------------------- */

struct direct {
    const struct fgw_config *config;
    const struct fgw_admin_call *call;
    struct fgw_cql_client *client;
    struct fgw_error error;
    enum fgw_err err;
    int status;
    json_t *answer;
};

static struct fgw_cql_client *client_of(void *context)
{
    struct direct *direct = context;
    return direct->client;
}

/* "/admin/nodes[/NAME/VERB]" */
static void execute(struct direct *direct, struct fgw_cluster *cluster)
{
    struct fgw_node_calls calls = {.cluster = cluster};
    struct fgw_arena arena;
    struct fgw_bytes rest = fgw_bytes_str(direct->call->path + strlen("/admin/nodes"));
    struct fgw_bytes name = {NULL, 0};
    struct fgw_bytes verb = {NULL, 0};
    fgw_arena_init(&arena, 0);
    (void)fgw_bytes_split(&rest, '/', &name);
    (void)fgw_bytes_split(&rest, '/', &name);
    (void)fgw_bytes_split(&rest, '/', &verb);
    direct->err = fgw_uri_decode(&arena, name, false, &name);
    if (direct->err == FGW_OK) {
        direct->status = fgw_node_call(&calls, direct->call->method, name, verb, direct->call->body,
                                       &direct->answer);
    }
    fgw_arena_deinit(&arena);
}

static void run(void *arg)
{
    struct direct *direct = arg;
    struct fgw_cql_config *config;
    direct->err = fgw_cql_config_of(direct->config, &config, &direct->error);
    if (direct->err != FGW_OK) {
        return;
    }
    direct->client = fgw_cql_client_new(fgw_loop_current(), config);
    struct fgw_cluster_options options = {.client = client_of,
                                          .client_context = direct,
                                          .keyspace = direct->config->cql_keyspace,
                                          .replicas = direct->config->replicas,
                                          .min_replicas = direct->config->min_replicas};
    struct fgw_cluster *cluster = fgw_cluster_new(&options);
    direct->err = fgw_cql_client_wait_ready(
        direct->client, fgw_loop_now_ms(fgw_loop_current()) + CONNECT_MS, &direct->error);
    if (direct->err == FGW_OK) {
        bool get = strcmp(direct->call->method, "GET") == 0;
        direct->err = fgw_cluster_look(cluster, get ? LOOK_MS : 0, &direct->error);
    }
    if (direct->err == FGW_OK) {
        execute(direct, cluster);
    }
    fgw_cql_client_free(direct->client);
    fgw_cluster_free(cluster);
    fgw_cql_config_free(config);
}

static int call_directly(struct node_verb *verb, const struct fgw_admin_call *call,
                         json_t **out_answer)
{
    struct direct direct = {.config = &verb->config, .call = call};
    fgw_error_init(&direct.error);
    fgw_fiber_run_alone(run, &direct);
    const char *message = json_string_value(json_object_get(direct.answer, "message"));
    if (direct.err != FGW_OK || direct.status != 200) {
        (void)fprintf(stderr, "fgw: error: %s\n",
                      message != NULL ? message : fgw_error_message(&direct.error));
        json_decref(direct.answer);
        return FGW_EXIT_INTERNAL;
    }
    *out_answer = direct.answer;
    return FGW_EXIT_OK;
}

/* -- calling ------------------------------------------------------------------------------------- */

static bool has_socket(const struct node_verb *verb)
{
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    bool there =
        access(fgw_arena_printf(&arena, "%s/admin.sock", verb->config.data_dir), F_OK) == 0;
    fgw_arena_deinit(&arena);
    return there;
}

static int call(struct node_verb *verb, const char *method, const char *path, const json_t *body,
                json_t **out_answer)
{
    struct fgw_admin_call wanted = {.method = method, .path = path, .body = body};
    if (verb->config.admin_url != NULL || has_socket(verb)) {
        return fgw_admin_call(&verb->config, &wanted, out_answer);
    }
    if (verb->config.cql_hosts.count == 0) {
        (void)fprintf(stderr,
                      "fgw: error: no process runs on %s; name its directory with --data, an ops "
                      "listener with --admin, or the database with FGW_CQL_HOSTS\n",
                      verb->config.data_dir);
        return FGW_EXIT_USAGE;
    }
    return call_directly(verb, &wanted, out_answer);
}

static int call_and_print(struct node_verb *verb, const char *path, json_t *body)
{
    static const char *const COLUMNS[] = {"node", "moves", "sets_lost", "result", NULL};
    json_t *answer = NULL;
    int exit_code = call(verb, "POST", path, body, &answer);
    if (exit_code == FGW_EXIT_OK) {
        exit_code = fgw_admin_print(answer, NULL, COLUMNS, verb->options[OPT_JSON].value != NULL);
    }
    json_decref(answer);
    json_decref(body);
    return exit_code;
}

static int list(struct node_verb *verb)
{
    static const char *const COLUMNS[] = {"node",       "store",    "state",       "zone",
                                          "host",       "address",  "sets",        "stored_bytes",
                                          "free_bytes", "silent_s", "unreachable", NULL};
    bool json = verb->options[OPT_JSON].value != NULL;
    json_t *answer = NULL;
    size_t index;
    const json_t *warning;
    int exit_code = call(verb, "GET", "/admin/nodes", NULL, &answer);
    if (exit_code == FGW_EXIT_OK) {
        exit_code = fgw_admin_print(answer, "nodes", COLUMNS, json);
    }
    if (exit_code == FGW_EXIT_OK && !json) {
        json_array_foreach(json_object_get(answer, "warnings"), index, warning)
        {
            (void)printf("warning: %s\n", json_string_value(warning));
        }
    }
    json_decref(answer);
    return exit_code;
}

/* -- reconcile ----------------------------------------------------------------------------------- */

struct gathered {
    json_t *unnamed;
    json_t *holds; /* with --all, else empty */
    json_int_t looked;
    json_t *last; /* the last answer */
};

/* Pages until the store has shown all its holds. */
static int gather(struct node_verb *verb, struct gathered *into)
{
    json_t *body = json_pack("{s:b}", "all", verb->options[OPT_ALL].value != NULL);
    const char *cursor = NULL;
    int exit_code;
    do {
        json_t *answer = NULL;
        exit_code = call(verb, "POST", "/admin/nodes/self/reconcile", body, &answer);
        if (exit_code != FGW_EXIT_OK) {
            break;
        }
        (void)json_array_extend(into->unnamed, json_object_get(answer, "unnamed"));
        (void)json_array_extend(into->holds, json_object_get(answer, "holds"));
        into->looked += json_integer_value(json_object_get(answer, "looked"));
        (void)json_object_set(body, "cursor", json_object_get(answer, "cursor"));
        cursor = json_string_value(json_object_get(body, "cursor"));
        json_decref(into->last);
        into->last = answer;
    } while (cursor != NULL && cursor[0] != '\0');
    json_decref(body);
    return exit_code;
}

static int print_gathered(const struct node_verb *verb, struct gathered *gathered)
{
    static const char *const COLUMNS[] = {
        "alarm",      "free_nothing_for_s", "epoch_shown",
        "epoch_seen", "map_version_shown",  "map_version_seen_before",
        "looked",     "unnamed_count",      NULL};
    static const char *const HOLDS[] = {"key", "size", "cid", "owner", "extent", "named", NULL};
    static const char *const UNNAMED[] = {"key", "size", "cid", NULL};
    bool json = verb->options[OPT_JSON].value != NULL;
    bool all = verb->options[OPT_ALL].value != NULL;
    json_t *last = gathered->last;
    (void)json_object_del(last, "cursor");
    (void)json_object_set_new(last, "looked", json_integer(gathered->looked));
    (void)json_object_set_new(last, "unnamed_count",
                              json_integer((json_int_t)json_array_size(gathered->unnamed)));
    (void)json_object_set(last, "unnamed", gathered->unnamed);
    if (all) {
        (void)json_object_set(last, "holds", gathered->holds);
    }
    int exit_code = fgw_admin_print(last, NULL, COLUMNS, json);
    const char *name = all ? "holds" : "unnamed";
    if (exit_code == FGW_EXIT_OK && !json && json_array_size(json_object_get(last, name)) > 0) {
        exit_code = fgw_admin_print(last, name, all ? HOLDS : UNNAMED, false);
    }
    return exit_code;
}

static int reconcile(struct node_verb *verb)
{
    struct gathered gathered = {.unnamed = json_array(), .holds = json_array()};
    int exit_code = gather(verb, &gathered);
    if (exit_code == FGW_EXIT_OK) {
        exit_code = print_gathered(verb, &gathered);
    }
    json_decref(gathered.last);
    json_decref(gathered.holds);
    json_decref(gathered.unnamed);
    return exit_code;
}

/* -- adopt --------------------------------------------------------------------------------------- */

struct adoption {
    const struct fgw_config *config;
    uint8_t cluster_id[FGW_CLUSTER_ID_SIZE];
    struct fgw_error error;
    enum fgw_err err;
};

static void ask_cluster(void *arg)
{
    struct adoption *adoption = arg;
    struct fgw_cql_config *config;
    adoption->err = fgw_cql_config_of(adoption->config, &config, &adoption->error);
    if (adoption->err != FGW_OK) {
        return;
    }
    struct fgw_cql_client *client = fgw_cql_client_new(fgw_loop_current(), config);
    adoption->err = fgw_cql_client_wait_ready(
        client, fgw_loop_now_ms(fgw_loop_current()) + CONNECT_MS, &adoption->error);
    if (adoption->err == FGW_OK) {
        struct fgw_identify only_read = {.make = false};
        adoption->err = fgw_cluster_identify(client, adoption->config->cql_keyspace, &only_read,
                                             adoption->cluster_id, &adoption->error);
    }
    fgw_cql_client_free(client);
    fgw_cql_config_free(config);
}

/* Without a database the directory stays in its cluster. */
static int adopt(struct node_verb *verb)
{
    static const char *const COLUMNS[] = {"store", "store_before", "result", NULL};
    struct adoption adoption = {.config = &verb->config};
    uint8_t before[FGW_STORAGE_ID_SIZE];
    uint8_t now[FGW_STORAGE_ID_SIZE];
    bool ask = verb->config.cql_hosts.count > 0;
    fgw_error_init(&adoption.error);
    if (ask) {
        fgw_fiber_run_alone(ask_cluster, &adoption);
    }
    if (adoption.err == FGW_OK) {
        adoption.err = fgw_storage_adopt(verb->config.data_dir, ask ? adoption.cluster_id : NULL,
                                         before, now, &adoption.error);
    }
    if (adoption.err != FGW_OK) {
        (void)fprintf(stderr, "fgw: error: %s\n", fgw_error_message(&adoption.error));
        return fgw_exit_of(adoption.err);
    }
    json_t *answer = json_pack(
        "{s:s,s:s,s:s}", "store", fgw_hex(&verb->arena, fgw_bytes(now, sizeof now)), "store_before",
        fgw_hex(&verb->arena, fgw_bytes(before, sizeof before)), "result",
        "a new store: what it holds counts as no copy; copies made here use it, the sweeper frees "
        "the rest");
    int exit_code = fgw_admin_print(answer, NULL, COLUMNS, verb->options[OPT_JSON].value != NULL);
    json_decref(answer);
    return exit_code;
}

/* -- the verb ------------------------------------------------------------------------------------ */

static bool is(const struct node_verb *verb, const char *word, size_t words)
{
    return verb->word_count == words && strcmp(verb->words[0], word) == 0;
}

static int order(struct node_verb *verb, const char *suffix, enum option option)
{
    json_t *body = json_pack("{s:b}", option == OPT_CANCEL ? "cancel" : "force",
                             verb->options[option].value != NULL);
    return call_and_print(
        verb, fgw_admin_path(&verb->arena, "/admin/nodes/", verb->words[1], suffix), body);
}

static int execute_verb(const struct fgw_command *command, struct node_verb *verb)
{
    if (is(verb, "list", 1)) {
        return list(verb);
    }
    if (is(verb, "adopt", 1)) {
        return adopt(verb);
    }
    if (is(verb, "drain", 2)) {
        return order(verb, "/drain", OPT_CANCEL);
    }
    if (is(verb, "remove", 2)) {
        return order(verb, "/remove", OPT_FORCE);
    }
    if (is(verb, "rebalance", 1)) {
        return call_and_print(verb, "/admin/nodes", json_pack("{s:s}", "do", "rebalance"));
    }
    if (is(verb, "reconcile", 1)) {
        return reconcile(verb);
    }
    (void)fprintf(
        stderr,
        "fgw: error: usage: fgw %s list | adopt | drain NODE [--cancel] | remove NODE [--force] | "
        "rebalance | reconcile [--all]\n",
        command->verb);
    return FGW_EXIT_USAGE;
}

int fgw_cmd_node(const struct fgw_command *command)
{
    struct node_verb verb = {0};
    memcpy(verb.options, OPTIONS, sizeof OPTIONS);
    struct fgw_config_input input = {.options = verb.options,
                                     .option_count = OPT_COUNT,
                                     .positionals = verb.words,
                                     .positional_max = 2};
    if (fgw_command_config(command, &input, &verb.config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    verb.word_count = input.positional_count;
    fgw_arena_init(&verb.arena, 0);
    int exit_code = execute_verb(command, &verb);
    fgw_arena_deinit(&verb.arena);
    fgw_config_deinit(&verb.config);
    return exit_code;
}
