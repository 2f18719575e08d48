/* data_verb.h: what verbs share that work on the data directory itself (recover, scrub, sweep):
 * settings, opening, running in a fiber, closing. */
#ifndef FGW_BIN_DATA_VERB_H
#define FGW_BIN_DATA_VERB_H

#include "bin/command.h"
#include "storage/storage.h"

struct fgw_data_verb {
    struct fgw_config config;
    struct fgw_storage_options storage; /* set before open: what differs from the settings */
    struct fgw_storage *store;
};

/* Loads the settings; `input` brings options of the verb. An exit code. */
int fgw_data_verb_begin(const struct fgw_command *command, struct fgw_config_input *input,
                        struct fgw_data_verb *verb);
/* Opens the directory, which must be there. Prints what is wrong; an exit code. */
int fgw_data_verb_open(struct fgw_data_verb *verb);
void fgw_data_verb_end(struct fgw_data_verb *verb);

#endif
