/* cmd_config.c: `fgw config [serve|proxy|kuri|db-init] [--json|--markdown]`. */
#include <stdio.h>

#include "base/check.h"
#include "bin/command.h"

static bool role_of(const char *name, enum fgw_role *out)
{
    static const enum fgw_role ROLES[] = {FGW_ROLE_SERVE, FGW_ROLE_PROXY, FGW_ROLE_KURI,
                                          FGW_ROLE_DB_INIT};
    for (size_t i = 0; i < FGW_COUNT_OF(ROLES); i++) {
        if (strcmp(name, fgw_role_name(ROLES[i])) == 0) {
            *out = ROLES[i];
            return true;
        }
    }
    return false;
}

static int print_out(struct fgw_buf *text)
{
    bool written = fwrite(text->ptr, 1, text->len, stdout) == text->len && fflush(stdout) == 0;
    fgw_buf_deinit(text);
    return written ? FGW_EXIT_OK : FGW_EXIT_INTERNAL;
}

int fgw_cmd_config(const struct fgw_command *command)
{
    struct fgw_command as = *command;
    struct fgw_config config;
    struct fgw_buf text;
    struct fgw_config_option options[] = {
        {"json", false, NULL, "one JSON document"},
        {"markdown", false, NULL, "the reference page of all settings"},
    };
    struct fgw_config_input input = {.options = options, .option_count = FGW_COUNT_OF(options)};
    fgw_buf_init(&text, 0);
    if (as.argc == 1 && strcmp(as.argv[0], "--markdown") == 0) {
        fgw_config_print_markdown(&text);
        return print_out(&text);
    }
    as.role = FGW_ROLE_SERVE;
    if (as.argc > 0 && as.argv[0][0] != '-') {
        if (!role_of(as.argv[0], &as.role)) {
            (void)fprintf(stderr,
                          "fgw: error: \"%s\" is no role; allowed: serve, proxy, kuri, "
                          "db-init\n",
                          as.argv[0]);
            return FGW_EXIT_USAGE;
        }
        as.argc--;
        as.argv++;
    }
    if (fgw_command_config(&as, &input, &config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    if (options[0].value != NULL) {
        fgw_config_print_json(&config, &text);
    } else if (options[1].value != NULL) {
        fgw_config_print_markdown(&text);
    } else {
        fgw_config_print_table(&config, &text);
    }
    fgw_config_deinit(&config);
    return print_out(&text);
}
