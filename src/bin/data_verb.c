/* data_verb.c: see data_verb.h. */
#include "bin/data_verb.h"

#include <stdio.h>
#include <sys/stat.h>

#include "bin/server.h"

int fgw_data_verb_begin(const struct fgw_command *command, struct fgw_config_input *input,
                        struct fgw_data_verb *verb)
{
    *verb = (struct fgw_data_verb){0};
    if (fgw_command_config(command, input, &verb->config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    const struct fgw_config *config = &verb->config;
    verb->storage = (struct fgw_storage_options){
        .path = config->data_dir,
        .memory_bytes = config->memory_bytes / 2,
        .group_size_bytes = config->group_size_bytes,
        .min_free_bytes = config->min_free_bytes == FGW_CONFIG_AUTO ? 0 : config->min_free_bytes,
        .sync_off = config->sync == FGW_CONFIG_SYNC_OFF,
        .release_delay_ms = config->release_delay_ms,
        .sweep_grace_ms = config->sweep_grace_ms,
        .dead_percent = config->dead_percent,
    };
    return FGW_EXIT_OK;
}

int fgw_data_verb_open(struct fgw_data_verb *verb)
{
    struct fgw_error error;
    struct stat status;
    fgw_error_init(&error);
    if (stat(verb->config.data_dir, &status) != 0) {
        (void)fprintf(stderr, "fgw: error: there is no data directory %s; name it with --data\n",
                      verb->config.data_dir);
        return FGW_EXIT_DATA_UNUSABLE;
    }
    enum fgw_err err = fgw_storage_open(&verb->storage, &verb->store, &error);
    if (err != FGW_OK) {
        (void)fprintf(stderr, "fgw: error: %s\n", fgw_error_message(&error));
        return fgw_exit_of(err);
    }
    return FGW_EXIT_OK;
}

void fgw_data_verb_end(struct fgw_data_verb *verb)
{
    fgw_storage_close(verb->store);
    fgw_config_deinit(&verb->config);
}
