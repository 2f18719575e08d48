/* cmd_backup.c: `fgw backup --to DIR`: by the process that runs, which copies and is asked how far it
 * is, or by this one when none does. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "bin/admin_client.h"
#include "bin/server.h"

enum { POLL_US = 300 * 1000 };

static uint64_t number(const json_t *answer, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(answer, name));
}

static const char *text(const json_t *answer, const char *name)
{
    const char *value = json_string_value(json_object_get(answer, name));
    return value == NULL ? "" : value;
}

static void print_progress(const json_t *answer)
{
    if (isatty(STDERR_FILENO) == 1) {
        (void)fprintf(stderr, "\r%llu of %llu files, %llu of %llu MiB ",
                      (unsigned long long)number(answer, "files"),
                      (unsigned long long)number(answer, "files_total"),
                      (unsigned long long)number(answer, "bytes") >> 20,
                      (unsigned long long)number(answer, "bytes_total") >> 20);
        (void)fflush(stderr);
    }
}

static int exit_of_failure(const json_t *answer)
{
    const char *error = text(answer, "error");
    (void)fprintf(stderr, "fgw: error: %s\n", text(answer, "message"));
    if (strcmp(error, "EXISTS") == 0) {
        return FGW_EXIT_USAGE;
    }
    if (strcmp(error, "CORRUPT") == 0) {
        return FGW_EXIT_DATA_DAMAGED;
    }
    return strcmp(error, "NOSPACE") == 0 || strcmp(error, "IO") == 0 ? FGW_EXIT_DATA_UNUSABLE
                                                                     : FGW_EXIT_INTERNAL;
}

static int report(const json_t *answer, bool json)
{
    uint64_t damaged = number(answer, "damaged");
    if (json) {
        (void)fgw_admin_print(answer, NULL, NULL, true);
    }
    if (strcmp(text(answer, "state"), "failed") == 0) {
        return exit_of_failure(answer);
    }
    if (strcmp(text(answer, "state"), "done") != 0) {
        (void)fprintf(stderr,
                      "fgw: error: the process that made the backup ended; call it again to "
                      "go on\n");
        return FGW_EXIT_INTERNAL;
    }
    if (!json) {
        (void)printf("%s: %llu files with %llu bytes, everything up to batch %llu\n",
                     text(answer, "to"), (unsigned long long)number(answer, "files"),
                     (unsigned long long)number(answer, "bytes"),
                     (unsigned long long)number(answer, "batch"));
    }
    if (damaged > 0) {
        (void)fprintf(stderr,
                      "fgw: error: %llu groups of the data directory are missing or too short: the "
                      "backup lacks the same; `fgw scrub` tells what\n",
                      (unsigned long long)damaged);
    }
    return damaged > 0 ? FGW_EXIT_DATA_DAMAGED : FGW_EXIT_OK;
}

/* Asks until it is over. */
static int follow(const struct fgw_config *config, json_t **answer)
{
    struct fgw_admin_call call = {.method = "GET", .path = "/admin/backup"};
    int exit_code = FGW_EXIT_OK;
    while (exit_code == FGW_EXIT_OK && strcmp(text(*answer, "state"), "running") == 0) {
        json_t *next = NULL;
        print_progress(*answer);
        (void)usleep(POLL_US);
        exit_code = fgw_admin_call(config, &call, &next);
        if (exit_code == FGW_EXIT_OK) {
            json_decref(*answer);
            *answer = next;
        }
    }
    if (isatty(STDERR_FILENO) == 1) {
        (void)fprintf(stderr, "\n");
    }
    return exit_code;
}

static int back_up(const struct fgw_config *config, const char *to, bool json)
{
    char here[4096] = "";
    if (to[0] != '/' && getcwd(here, sizeof here) == NULL) {
        (void)fprintf(stderr,
                      "fgw: error: the working directory has no name: give --to a path that "
                      "begins with /\n");
        return FGW_EXIT_USAGE;
    }
    json_t *body = json_object();
    (void)json_object_set_new(body, "to",
                              json_sprintf("%s%s%s", here, to[0] == '/' ? "" : "/", to));
    json_t *answer = NULL;
    struct fgw_admin_call call = {.method = "POST", .path = "/admin/backup", .body = body};
    int exit_code = fgw_admin_call(config, &call, &answer);
    json_decref(body);
    if (exit_code == FGW_EXIT_OK) {
        exit_code = follow(config, &answer);
    }
    if (exit_code == FGW_EXIT_OK) {
        exit_code = report(answer, json);
    }
    json_decref(answer);
    return exit_code;
}

int fgw_cmd_backup(const struct fgw_command *command)
{
    struct fgw_config_option options[] = {
        {"to", true, NULL, "directory to make; an unfinished backup in it is gone on with"},
        {"json", false, NULL, "one JSON document"}};
    struct fgw_config_input input = {.options = options, .option_count = FGW_COUNT_OF(options)};
    struct fgw_config config;
    if (fgw_command_config(command, &input, &config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    int exit_code = FGW_EXIT_USAGE;
    if (options[0].value == NULL) {
        (void)fprintf(stderr, "fgw: error: usage: fgw backup --to DIR [--json]\n");
    } else {
        exit_code = back_up(&config, options[0].value, options[1].value != NULL);
    }
    fgw_config_deinit(&config);
    return exit_code;
}
