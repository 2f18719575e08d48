/* cmd_restore.c: `fgw restore --from DIR`: a backup becomes a data directory, which is then opened
 * once: the index is made from its checkpoint. */
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "bin/data_verb.h"
#include "bin/server.h"

static void print_progress(void *context, uint64_t files, uint64_t files_total)
{
    (void)context;
    if (isatty(STDERR_FILENO) == 1) {
        (void)fprintf(stderr, "\r%llu of %llu files%s", (unsigned long long)files,
                      (unsigned long long)files_total, files == files_total ? "\n" : "");
        (void)fflush(stderr);
    }
}

static int restore(const struct fgw_storage_restore *options)
{
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err = fgw_storage_restore(options, &error);
    if (err != FGW_OK) {
        (void)fprintf(stderr, "fgw: error: %s\n", fgw_error_message(&error));
    }
    return err == FGW_ERR_EXISTS ? FGW_EXIT_USAGE : fgw_exit_of(err);
}

static int open_restored(struct fgw_data_verb *verb)
{
    int exit_code = fgw_data_verb_open(verb);
    if (exit_code != FGW_EXIT_OK) {
        return exit_code;
    }
    struct fgw_storage_recovery recovery = fgw_storage_recovered(verb->store);
    struct fgw_storage_stats stats;
    fgw_storage_stats(verb->store, &stats);
    (void)printf("restored %s: %llu blocks, %llu bytes held, everything up to batch %llu\n",
                 verb->config.data_dir, (unsigned long long)stats.blocks,
                 (unsigned long long)stats.live_bytes, (unsigned long long)stats.last_batch);
    if (recovery.damaged_groups > 0) {
        (void)fprintf(stderr,
                      "fgw: error: %llu groups are missing or too short: `fgw scrub` tells "
                      "what misses its bytes\n",
                      (unsigned long long)recovery.damaged_groups);
        return FGW_EXIT_DATA_DAMAGED;
    }
    return FGW_EXIT_OK;
}

int fgw_cmd_restore(const struct fgw_command *command)
{
    struct fgw_config_option options[] = {
        {"from", true, NULL, "a directory made by fgw backup"},
        {"replace", false, NULL, "it takes the place of the lost directory: the store id stays"}};
    struct fgw_config_input input = {.options = options, .option_count = FGW_COUNT_OF(options)};
    struct fgw_data_verb verb;
    int exit_code = fgw_data_verb_begin(command, &input, &verb);
    if (exit_code != FGW_EXIT_OK) {
        return exit_code;
    }
    if (options[0].value == NULL) {
        (void)fprintf(stderr, "fgw: error: usage: fgw restore --from DIR [--replace]\n");
        fgw_data_verb_end(&verb);
        return FGW_EXIT_USAGE;
    }
    struct fgw_storage_restore settings = {.from = options[0].value,
                                           .to = verb.config.data_dir,
                                           .replace = options[1].value != NULL,
                                           .progress = print_progress};
    exit_code = restore(&settings);
    if (exit_code == FGW_EXIT_OK) {
        exit_code = open_restored(&verb);
    }
    fgw_data_verb_end(&verb);
    return exit_code;
}
