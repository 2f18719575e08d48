/* cmd_group.c: `fgw group`: the group files of a data directory, through the process that runs or, when
 * none does, by opening it. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "bin/admin_client.h"

static const char *const COLUMNS[] = {"id",          "kind",       "state",      "file_bytes",
                                      "live_blocks", "live_bytes", "dead_bytes", NULL};

struct group_verb {
    struct fgw_config config;
    struct fgw_arena arena;
    bool json;
};

static int call_and_print(struct group_verb *verb, const char *method, const char *path,
                          const char *list)
{
    json_t *answer = NULL;
    struct fgw_admin_call call = {.method = method, .path = path};
    int exit_code = fgw_admin_call(&verb->config, &call, &answer);
    if (exit_code == FGW_EXIT_OK) {
        exit_code = fgw_admin_print(answer, list, COLUMNS, verb->json);
    }
    json_decref(answer);
    return exit_code;
}

static const char *path_of(struct group_verb *verb, const char *id, const char *suffix)
{
    return fgw_admin_path(&verb->arena, "/admin/groups/", id, suffix);
}

struct check {
    json_int_t offset;
    json_int_t sections;
    bool done;
    bool damaged;
};

/* A stretch of the file. */
static int check_more(struct group_verb *verb, const char *id, struct check *check)
{
    json_t *answer = NULL;
    json_t *body = json_object();
    (void)json_object_set_new(body, "offset", json_integer(check->offset));
    struct fgw_admin_call call = {
        .method = "POST", .path = path_of(verb, id, "/verify"), .body = body};
    int exit_code = fgw_admin_call(&verb->config, &call, &answer);
    if (exit_code == FGW_EXIT_OK) {
        check->offset = json_integer_value(json_object_get(answer, "offset"));
        check->sections += json_integer_value(json_object_get(answer, "sections"));
        check->done = json_is_true(json_object_get(answer, "done"));
        check->damaged = json_is_true(json_object_get(answer, "damaged"));
    }
    json_decref(answer);
    json_decref(body);
    return exit_code;
}

static int verify(struct group_verb *verb, const char *id)
{
    struct check check = {0};
    int exit_code = FGW_EXIT_OK;
    while (exit_code == FGW_EXIT_OK && !check.done && !check.damaged) {
        exit_code = check_more(verb, id, &check);
    }
    if (exit_code != FGW_EXIT_OK) {
        return exit_code;
    }
    if (verb->json) {
        (void)printf("{\"id\": %s, \"sections\": %lld, \"offset\": %lld, \"damaged\": %s}\n", id,
                     (long long)check.sections, (long long)check.offset,
                     check.damaged ? "true" : "false");
    } else if (check.damaged) {
        (void)printf("group %s is damaged at offset %lld, behind %lld whole sections\n", id,
                     (long long)check.offset, (long long)check.sections);
    } else {
        (void)printf("group %s: %lld sections, %lld bytes, each has its CID\n", id,
                     (long long)check.sections, (long long)check.offset);
    }
    return check.damaged ? FGW_EXIT_DATA_DAMAGED : FGW_EXIT_OK;
}

static int run(const struct fgw_command *command, struct group_verb *verb,
               const struct fgw_config_input *input)
{
    const char *what = input->positional_count > 0 ? input->positionals[0] : "";
    const char *id = input->positional_count == 2 ? input->positionals[1] : NULL;
    if (strcmp(what, "list") == 0 && input->positional_count == 1) {
        return call_and_print(verb, "GET", "/admin/groups", "groups");
    }
    if (strcmp(what, "show") == 0 && id != NULL) {
        return call_and_print(verb, "GET", path_of(verb, id, ""), NULL);
    }
    if (strcmp(what, "seal") == 0 && id != NULL) {
        return call_and_print(verb, "POST", path_of(verb, id, "/seal"), NULL);
    }
    if (strcmp(what, "verify") == 0 && id != NULL) {
        return verify(verb, id);
    }
    (void)fprintf(stderr,
                  "fgw: error: usage: fgw %s list | show ID | seal ID | verify ID [--json]\n",
                  command->verb);
    return FGW_EXIT_USAGE;
}

int fgw_cmd_group(const struct fgw_command *command)
{
    struct group_verb verb = {0};
    const char *words[2];
    struct fgw_config_option options[] = {{"json", false, NULL, "one JSON document"}};
    struct fgw_config_input input = {.options = options,
                                     .option_count = FGW_COUNT_OF(options),
                                     .positionals = words,
                                     .positional_max = 2};
    if (fgw_command_config(command, &input, &verb.config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    verb.json = options[0].value != NULL;
    fgw_arena_init(&verb.arena, 0);
    int exit_code = run(command, &verb, &input);
    fgw_arena_deinit(&verb.arena);
    fgw_config_deinit(&verb.config);
    return exit_code;
}
