/* main.c: picks the verb from verbs.def and hands over. */
#include <stdio.h>

#include "base/check.h"
#include "bin/command.h"

struct verb {
    const char *name;
    enum fgw_role role;
    const char *arguments;
    const char *summary;
    fgw_command_handler *handler; /* NULL: not in this build */
};

static const struct verb VERBS[] = {
#define FGW_VERB(id, name, role, arguments, summary) \
    {name, FGW_ROLE_##role, arguments, summary, fgw_cmd_##id},
#define FGW_VERB_LATER(id, name, role, arguments, summary) \
    {name, FGW_ROLE_##role, arguments, summary, NULL},
#include "bin/verbs.def"
#undef FGW_VERB
#undef FGW_VERB_LATER
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < FGW_COUNT_OF(VERBS); i++) {
        if (strcmp(VERBS[i].name, name) == 0) {
            return &VERBS[i];
        }
    }
    return NULL;
}

static void print_usage(FILE *to)
{
    (void)fprintf(to, "fgw: an S3-compatible object store\n\nusage: fgw VERB [flags]\n"
                      "       fgw help VERB\n       fgw --version\n\n");
    for (size_t i = 0; i < FGW_COUNT_OF(VERBS); i++) {
        (void)fprintf(to, "  %-9s %s%s\n", VERBS[i].name, VERBS[i].summary,
                      VERBS[i].handler == NULL ? " (not in this build)" : "");
    }
}

static int print_verb_help(const struct verb *verb)
{
    struct fgw_buf text;
    fgw_buf_init(&text, 0);
    (void)printf("usage: fgw %s%s%s [flags]\n\n%s%s\n\nflags (environment and file name in "
                 "parentheses):\n",
                 verb->name, verb->arguments[0] == '\0' ? "" : " ", verb->arguments, verb->summary,
                 verb->handler == NULL ? " (not in this build)" : "");
    if (verb->handler != NULL) {
        struct fgw_command command = {.verb = verb->name, .role = verb->role, .help = &text};
        (void)verb->handler(&command);
    }
    fgw_config_print_help(verb->role, &text);
    (void)printf("%.*s", FGW_FMT(fgw_buf_bytes(&text)));
    fgw_buf_deinit(&text);
    return fflush(stdout) == 0 ? FGW_EXIT_OK : FGW_EXIT_INTERNAL;
}

static int unknown_verb(const char *name)
{
    (void)fprintf(stderr, "fgw: error: \"%s\" is no verb; see fgw help\n", name);
    return FGW_EXIT_USAGE;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

static int run_verb(const struct verb *verb, int argc, char **argv, char **envp)
{
    if (asks_for_help(argc, argv)) {
        return print_verb_help(verb);
    }
    if (verb->handler == NULL) {
        (void)fprintf(stderr, "fgw: error: fgw %s is not in this build\n", verb->name);
        return FGW_EXIT_INTERNAL;
    }
    struct fgw_command command = {verb->name, verb->role, argc, argv, envp, NULL};
    return verb->handler(&command);
}

/* The verb that FGW_NODE_TYPE stands for when none is given (the Go gateway's way to start); NULL
 * when it is not set. */
static const struct verb *verb_of_node_type(int argc, char **argv, char **envp)
{
    struct fgw_buf errors;
    struct fgw_buf warnings;
    struct fgw_config config;
    struct fgw_config_input input = {FGW_ROLE_TOOL, argc, argv, envp, NULL, 0, NULL, 0, 0};
    const struct verb *verb = NULL;
    fgw_buf_init(&errors, 0);
    fgw_buf_init(&warnings, 0);
    /* Flags of the verb are not known yet: only the outcome counts, the verb reports mistakes. */
    if (fgw_config_load(&input, &config, &errors, &warnings) == FGW_OK) {
        verb = config.node_type == FGW_CONFIG_NODE_STORAGE    ? find_verb("kuri")
               : config.node_type == FGW_CONFIG_NODE_FRONTEND ? find_verb("proxy")
                                                              : NULL;
        fgw_config_deinit(&config);
    }
    fgw_buf_deinit(&errors);
    fgw_buf_deinit(&warnings);
    return verb;
}

static int help(int argc, char **argv)
{
    if (argc < 3) {
        print_usage(stdout);
        return FGW_EXIT_OK;
    }
    const struct verb *verb = find_verb(argv[2]);
    return verb == NULL ? unknown_verb(argv[2]) : print_verb_help(verb);
}

int main(int argc, char **argv, char **envp)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "--version") == 0) {
        fgw_print_version();
        return FGW_EXIT_OK;
    }
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        return help(argc, argv);
    }
    const struct verb *verb = find_verb(word);
    if (verb != NULL) {
        return run_verb(verb, argc - 2, argv + 2, envp);
    }
    if (word[0] != '\0' && word[0] != '-') {
        return unknown_verb(word);
    }
    verb = verb_of_node_type(argc - 1, argv + 1, envp);
    if (verb == NULL) {
        print_usage(stderr);
        return FGW_EXIT_USAGE;
    }
    return run_verb(verb, argc - 1, argv + 1, envp);
}
