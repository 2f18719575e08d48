/* command.c: see command.h. */
#include "bin/command.h"

#include <stdio.h>

/* Each line of *lines to standard error, with a word in front. */
static void print_lines(const char *word, struct fgw_buf *lines)
{
    struct fgw_bytes rest = fgw_buf_bytes(lines);
    struct fgw_bytes line;
    while (fgw_bytes_split(&rest, '\n', &line)) {
        if (line.len > 0) {
            (void)fprintf(stderr, "fgw: %s: %.*s\n", word, FGW_FMT(line));
        }
    }
}

/* Whatever the level is: a log that stays silent must say why. */
static void announce_level(const struct fgw_command *command, const struct fgw_config *config)
{
    bool is_role = strcmp(command->verb, fgw_role_name(command->role)) == 0;
    if (is_role && command->role != FGW_ROLE_DB_INIT) {
        fgw_log_write(FGW_LOG_INFO, "config", "log level is %s (%s)",
                      fgw_log_level_name(config->log_level),
                      config->values[FGW_SETTING_LOG_LEVEL].where);
    }
}

static void describe_options(const struct fgw_config_input *input, struct fgw_buf *out)
{
    for (size_t i = 0; i < input->option_count; i++) {
        const struct fgw_config_option *option = &input->options[i];
        (void)fgw_buf_appendf(out, "  --%s%s\n      %s\n", option->name,
                              option->takes_value ? " VALUE" : "", option->help);
    }
}

enum fgw_err fgw_command_config(const struct fgw_command *command, struct fgw_config_input *input,
                                struct fgw_config *out)
{
    struct fgw_buf errors;
    struct fgw_buf warnings;
    if (command->help != NULL) {
        describe_options(input, command->help);
        return FGW_ERR_CONFIG;
    }
    fgw_buf_init(&errors, 0);
    fgw_buf_init(&warnings, 0);
    input->role = command->role;
    input->argc = command->argc;
    input->argv = command->argv;
    input->envp = command->envp;
    enum fgw_err err = fgw_config_load(input, out, &errors, &warnings);
    print_lines("warning", &warnings);
    print_lines("error", &errors);
    if (err == FGW_OK) {
        fgw_log_configure(out->log_level, out->log_format == FGW_CONFIG_LOG_JSON);
        announce_level(command, out);
    } else {
        (void)fprintf(stderr, "fgw: nothing was opened; see fgw help %s\n", command->verb);
    }
    fgw_buf_deinit(&errors);
    fgw_buf_deinit(&warnings);
    return err;
}
