/* command.h: what main hands to a verb. A verb's code is wiring: it loads the configuration, calls
 * modules and turns their errors into an exit code. */
#ifndef FGW_BIN_COMMAND_H
#define FGW_BIN_COMMAND_H

#include "bin/exit_codes.h"
#include "config/config.h"

struct fgw_command {
    const char *verb;
    enum fgw_role role;
    int argc; /* what follows the verb */
    char *const *argv;
    char *const *envp;
    struct fgw_buf *help; /* not NULL: nothing is to be done but fgw_command_config describes the
                             verb's own flags here, and what the verb then returns counts for nothing */
};

typedef int fgw_command_handler(const struct fgw_command *command);

#define FGW_VERB(id, name, role, arguments, summary) fgw_command_handler fgw_cmd_##id;
#define FGW_VERB_LATER(id, name, role, arguments, summary)
#include "bin/verbs.def"
#undef FGW_VERB
#undef FGW_VERB_LATER

/* Loads the settings for a verb. `input` brings options and positionals of the verb; role,
 * arguments and environment are filled in from the command. Mistakes go to standard error, one line
 * each; FGW_ERR_CONFIG then (exit FGW_EXIT_USAGE). Warnings go to standard error as well, and
 * logging is set up from the result. */
enum fgw_err fgw_command_config(const struct fgw_command *command, struct fgw_config_input *input,
                                struct fgw_config *out) FGW_MUST_CHECK;
/* `fgw --version`: version, commit, build type, libraries. */
void fgw_print_version(void);
/* "0.1.0" and the commit it was built from. */
const char *fgw_version(void);
const char *fgw_version_commit(void);

#endif
