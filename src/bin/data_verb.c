/* data_verb.c: see data_verb.h. */
#include "bin/data_verb.h"

#include <stdio.h>

#include "bin/store.h"

int fgw_data_verb_begin(const struct fgw_command *command, struct fgw_config_input *input,
                        struct fgw_data_verb *verb)
{
    *verb = (struct fgw_data_verb){0};
    if (fgw_command_config(command, input, &verb->config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    verb->storage = fgw_store_options(&verb->config);
    return FGW_EXIT_OK;
}

int fgw_data_verb_open(struct fgw_data_verb *verb)
{
    if (verb->config.admin_url != NULL) {
        (void)fprintf(stderr, "fgw: error: --admin (FGW_ADMIN): this works on the data directory "
                              "itself, not through a process\n");
        return FGW_EXIT_USAGE;
    }
    return fgw_store_open_existing(&verb->storage, &verb->store);
}

void fgw_data_verb_end(struct fgw_data_verb *verb)
{
    fgw_storage_close(verb->store);
    fgw_config_deinit(&verb->config);
}
