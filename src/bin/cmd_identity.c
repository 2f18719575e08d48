/* cmd_identity.c: `fgw user`, `fgw key`, `fgw bucket`: calls of the admin API. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "bin/admin_client.h"

enum option {
    OPT_ID,
    OPT_EMAIL,
    OPT_DISPLAY,
    OPT_ACCESS,
    OPT_SECRET,
    OPT_POLICY,
    OPT_SHARDS,
    OPT_REPLICAS,
    OPT_OWNER,
    OPT_BYTES,
    OPT_OBJECTS,
    OPT_FORCE,
    OPT_JSON,
    OPT_COUNT
};

struct admin_verb {
    struct fgw_config config;
    struct fgw_config_option options[OPT_COUNT];
    const char *words[2]; /* sub-verb and name */
    size_t word_count;
    struct fgw_arena arena;
};

static const struct fgw_config_option OPTIONS[OPT_COUNT] = {
    [OPT_ID] = {"id", true, NULL, "canonical id of the user; drawn unless given"},
    [OPT_EMAIL] = {"email", true, NULL, "e-mail address"},
    [OPT_DISPLAY] = {"display-name", true, NULL, "name shown in listings"},
    [OPT_ACCESS] = {"access-key", true, NULL, "access key; drawn unless given"},
    [OPT_SECRET] = {"secret-key", true, NULL, "secret key, at least 16 characters"},
    [OPT_POLICY] =
        {"policy", true, NULL,
         "rights on the buckets of others: none (the default), readonly, readwrite, admin"},
    [OPT_SHARDS] = {"shards", true, NULL, "shards of a bucket's index, 1 to 4096"},
    [OPT_REPLICAS] = {"replicas", true, NULL, "copies of each object of a bucket"},
    [OPT_OWNER] = {"owner", true, NULL, "user name; root unless given"},
    [OPT_BYTES] = {"bytes", true, NULL, "quota: most bytes of a bucket (10GiB), or none"},
    [OPT_OBJECTS] = {"objects", true, NULL, "quota: most objects of a bucket, or none"},
    [OPT_FORCE] = {"force", false, NULL, "remove a user although it owns buckets, which stay"},
    [OPT_JSON] = {"json", false, NULL, "one JSON document"},
};

enum { OF_USER = 1, OF_KEY = 2, OF_BUCKET = 4 };

/* The verbs that know an option. */
static const unsigned KNOWN_BY[OPT_COUNT] = {
    [OPT_ID] = OF_USER,
    [OPT_EMAIL] = OF_USER,
    [OPT_DISPLAY] = OF_USER,
    [OPT_ACCESS] = OF_USER | OF_KEY,
    [OPT_SECRET] = OF_USER | OF_KEY,
    [OPT_POLICY] = OF_USER,
    [OPT_SHARDS] = OF_BUCKET,
    [OPT_REPLICAS] = OF_BUCKET,
    [OPT_OWNER] = OF_BUCKET,
    [OPT_BYTES] = OF_BUCKET,
    [OPT_OBJECTS] = OF_BUCKET,
    [OPT_FORCE] = OF_USER,
    [OPT_JSON] = OF_USER | OF_KEY | OF_BUCKET,
};

static int check_options(const struct fgw_command *command, const struct admin_verb *verb,
                         unsigned of)
{
    for (size_t i = 0; i < OPT_COUNT; i++) {
        if (verb->options[i].value != NULL && (KNOWN_BY[i] & of) == 0) {
            (void)fprintf(stderr, "fgw: error: fgw %s has no flag --%s\n", command->verb,
                          verb->options[i].name);
            return FGW_EXIT_USAGE;
        }
    }
    return FGW_EXIT_OK;
}

static int begin(const struct fgw_command *command, struct admin_verb *verb, unsigned of)
{
    memcpy(verb->options, OPTIONS, sizeof OPTIONS);
    struct fgw_config_input input = {.options = verb->options,
                                     .option_count = OPT_COUNT,
                                     .positionals = verb->words,
                                     .positional_max = 2};
    if (fgw_command_config(command, &input, &verb->config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    if (check_options(command, verb, of) != FGW_EXIT_OK) {
        fgw_config_deinit(&verb->config);
        return FGW_EXIT_USAGE;
    }
    verb->word_count = input.positional_count;
    fgw_arena_init(&verb->arena, 0);
    return FGW_EXIT_OK;
}

static void end(struct admin_verb *verb)
{
    fgw_arena_deinit(&verb->arena);
    fgw_config_deinit(&verb->config);
}

static bool is(const struct admin_verb *verb, const char *word, size_t words)
{
    return verb->word_count == words && strcmp(verb->words[0], word) == 0;
}

static void set_text(json_t *body, const char *name, const char *value)
{
    if (value != NULL) {
        (void)json_object_set_new(body, name, json_string(value));
    }
}

static int call_and_print(struct admin_verb *verb, const char *method, const char *path,
                          json_t *body, const char *list, const char *const *columns)
{
    json_t *answer = NULL;
    struct fgw_admin_call call = {method, path, body};
    int exit_code = fgw_admin_call(&verb->config, &call, &answer);
    if (exit_code == FGW_EXIT_OK) {
        exit_code = fgw_admin_print(answer, list, columns, verb->options[OPT_JSON].value != NULL);
    }
    json_decref(answer);
    json_decref(body);
    return exit_code;
}

static int usage(const struct fgw_command *command, const char *text)
{
    (void)fprintf(stderr, "fgw: error: usage: fgw %s %s\n", command->verb, text);
    return FGW_EXIT_USAGE;
}

static const char *const USER_COLUMNS[] = {
    "name", "id", "display_name", "email", "policy", "created", "access_key", "secret_key", NULL};
static const char *const USERS_COLUMNS[] = {"name", "policy", "email", "id", NULL};
static const char *const KEY_COLUMNS[] = {"access_key", "secret_key", "user",
                                          "disabled",   "created",    NULL};
static const char *const KEYS_COLUMNS[] = {"access_key", "user", "disabled", "created", NULL};
static const char *const BUCKET_COLUMNS[] = {
    "name",   "id",       "owner",       "owner_id",      "created", "versioning",
    "shards", "replicas", "quota_bytes", "quota_objects", NULL};
static const char *const BUCKETS_COLUMNS[] = {"name",       "owner",  "created",
                                              "versioning", "shards", NULL};
static const char *const QUOTA_COLUMNS[] = {
    "name", "quota_bytes", "quota_objects", "bytes", "objects", "upload_bytes", NULL};
static const char *const REMOVED_COLUMNS[] = {"removed", NULL};

int fgw_cmd_user(const struct fgw_command *command)
{
    struct admin_verb verb = {0};
    int exit_code = begin(command, &verb, OF_USER);
    if (exit_code != FGW_EXIT_OK) {
        return exit_code;
    }
    if (is(&verb, "list", 1)) {
        exit_code = call_and_print(&verb, "GET", "/admin/users", NULL, "users", USERS_COLUMNS);
    } else if (is(&verb, "show", 2)) {
        exit_code = call_and_print(&verb, "GET",
                                   fgw_admin_path(&verb.arena, "/admin/users/", verb.words[1], ""),
                                   NULL, NULL, USER_COLUMNS);
    } else if (is(&verb, "remove", 2)) {
        exit_code = call_and_print(
            &verb, "DELETE",
            fgw_admin_path(&verb.arena, "/admin/users/", verb.words[1],
                           verb.options[OPT_FORCE].value != NULL ? "?force=true" : ""),
            NULL, NULL, REMOVED_COLUMNS);
    } else if (is(&verb, "add", 2)) {
        json_t *body = json_pack("{s:s}", "name", verb.words[1]);
        set_text(body, "id", verb.options[OPT_ID].value);
        set_text(body, "email", verb.options[OPT_EMAIL].value);
        set_text(body, "display_name", verb.options[OPT_DISPLAY].value);
        set_text(body, "access_key", verb.options[OPT_ACCESS].value);
        set_text(body, "secret_key", verb.options[OPT_SECRET].value);
        set_text(body, "policy", verb.options[OPT_POLICY].value);
        exit_code = call_and_print(&verb, "POST", "/admin/users", body, NULL, USER_COLUMNS);
    } else {
        exit_code =
            usage(command, "add NAME [--id ID] [--email E] [--display-name D] "
                           "[--access-key A --secret-key S] [--policy P] | list | show NAME "
                           "| remove NAME [--force]");
    }
    end(&verb);
    return exit_code;
}

int fgw_cmd_key(const struct fgw_command *command)
{
    struct admin_verb verb = {0};
    int exit_code = begin(command, &verb, OF_KEY);
    if (exit_code != FGW_EXIT_OK) {
        return exit_code;
    }
    if (is(&verb, "list", 1)) {
        exit_code = call_and_print(&verb, "GET", "/admin/keys", NULL, "keys", KEYS_COLUMNS);
    } else if (is(&verb, "list", 2)) {
        exit_code = call_and_print(
            &verb, "GET", fgw_admin_path(&verb.arena, "/admin/keys?user=", verb.words[1], ""), NULL,
            "keys", KEYS_COLUMNS);
    } else if (is(&verb, "add", 2)) {
        json_t *body = json_pack("{s:s}", "user", verb.words[1]);
        set_text(body, "access_key", verb.options[OPT_ACCESS].value);
        set_text(body, "secret_key", verb.options[OPT_SECRET].value);
        exit_code = call_and_print(&verb, "POST", "/admin/keys", body, NULL, KEY_COLUMNS);
    } else if (is(&verb, "remove", 2)) {
        exit_code = call_and_print(&verb, "DELETE",
                                   fgw_admin_path(&verb.arena, "/admin/keys/", verb.words[1], ""),
                                   NULL, NULL, REMOVED_COLUMNS);
    } else if (is(&verb, "disable", 2) || is(&verb, "enable", 2)) {
        const char *suffix = verb.words[0][0] == 'd' ? "/disable" : "/enable";
        exit_code = call_and_print(
            &verb, "POST", fgw_admin_path(&verb.arena, "/admin/keys/", verb.words[1], suffix), NULL,
            NULL, KEY_COLUMNS);
    } else {
        exit_code =
            usage(command, "add USER [--access-key A --secret-key S] | list [USER] | remove "
                           "KEY | disable KEY | enable KEY");
    }
    end(&verb);
    return exit_code;
}

static void set_number(json_t *body, const char *name, const char *text)
{
    uint64_t value = 0;
    if (text != NULL && fgw_bytes_to_u64(fgw_bytes_str(text), &value) == FGW_OK &&
        value <= INT32_MAX) {
        (void)json_object_set_new(body, name, json_integer((json_int_t)value));
    } else if (text != NULL) {
        (void)json_object_set_new(body, name, json_integer(-1)); /* refused with the range */
    }
}

/* A limit for the call: a number, 0 for "none". */
static bool set_limit(json_t *body, const char *name, const struct fgw_config_option *option)
{
    struct fgw_bytes text = fgw_bytes_str(option->value);
    uint64_t value = 0;
    if (option->value == NULL) {
        return true;
    }
    bool size = strcmp(option->name, "bytes") == 0;
    bool none = fgw_bytes_eq_str(text, "none");
    bool read =
        none || (size ? fgw_config_size(text, &value) : fgw_bytes_to_u64(text, &value)) == FGW_OK;
    if (!read || (!none && value == 0) || value > INT64_MAX) {
        (void)fprintf(stderr, "fgw: error: --%s %s: %s from 1, or none\n", option->name,
                      option->value, size ? "a size (500MiB, 10GiB)" : "a number");
        return false;
    }
    (void)json_object_set_new(body, name, json_integer((json_int_t)value));
    return true;
}

static int quota(struct admin_verb *verb)
{
    const char *path = fgw_admin_path(&verb->arena, "/admin/buckets/", verb->words[1], "/quota");
    json_t *body = json_object();
    if (!set_limit(body, "bytes", &verb->options[OPT_BYTES]) ||
        !set_limit(body, "objects", &verb->options[OPT_OBJECTS])) {
        json_decref(body);
        return FGW_EXIT_USAGE;
    }
    bool change = json_object_size(body) > 0;
    return call_and_print(verb, change ? "POST" : "GET", path, body, NULL, QUOTA_COLUMNS);
}

int fgw_cmd_bucket(const struct fgw_command *command)
{
    struct admin_verb verb = {0};
    int exit_code = begin(command, &verb, OF_BUCKET);
    if (exit_code != FGW_EXIT_OK) {
        return exit_code;
    }
    if (is(&verb, "list", 1)) {
        exit_code =
            call_and_print(&verb, "GET", "/admin/buckets", NULL, "buckets", BUCKETS_COLUMNS);
    } else if (is(&verb, "show", 2)) {
        exit_code = call_and_print(
            &verb, "GET", fgw_admin_path(&verb.arena, "/admin/buckets/", verb.words[1], ""), NULL,
            NULL, BUCKET_COLUMNS);
    } else if (is(&verb, "create", 2)) {
        json_t *body = json_pack("{s:s}", "name", verb.words[1]);
        set_text(body, "owner", verb.options[OPT_OWNER].value);
        set_number(body, "shards", verb.options[OPT_SHARDS].value);
        set_number(body, "replicas", verb.options[OPT_REPLICAS].value);
        exit_code = call_and_print(&verb, "POST", "/admin/buckets", body, NULL, BUCKET_COLUMNS);
    } else if (is(&verb, "quota", 2)) {
        exit_code = quota(&verb);
    } else {
        exit_code =
            usage(command, "create NAME [--shards N] [--replicas R] [--owner USER] | list | "
                           "show NAME | quota NAME [--bytes SIZE|none] [--objects N|none]");
    }
    end(&verb);
    return exit_code;
}
