/* load.c: collects settings from flags, environment and file, decides which one counts, parses it.
 *
 * A setting may be given several times: the source decides (flag, environment, file), then the name
 * (its own, its own with _FILE, the aliases in the order of the table). One thread, at start.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "config/config_internal.h"

enum { CONFIG_FILE_MAX = 1 << 20, SECRET_FILE_MAX = 64 << 10 };

/* Order of names within one source: the setting's own, then _FILE, then aliases from here down. */
enum { RANK_SOURCE = 1000, RANK_OWN = 999, RANK_FILE = 998, RANK_ALIAS = 997 };

struct candidate {
    bool given;
    bool in_file; /* text is the path of a file that holds the value */
    unsigned rank;
    const char *name; /* FGW_DATA, RIBS_DATA, --data: as it was written */
    const char *where;
    const char *text;
    enum fgw_config_source source;
    enum alias_form form;
};

struct collection {
    struct load *load;
    struct candidate best[FGW_SETTING_COUNT];
    struct fgw_buf without_effect;
    const char *config_file;
};

/* -- reports -------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 0))) static void report(struct fgw_buf *to, const char *format,
                                                         va_list args)
{
    char line[1024];
    (void)vsnprintf(line, sizeof line, format, args);
    (void)fgw_buf_appendf(to, "%s\n", line);
}

void load_error(struct load *load, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(load->errors, format, args);
    va_end(args);
}

void load_warning(struct load *load, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(load->warnings, format, args);
    va_end(args);
}

/* -- candidates ----------------------------------------------------------------------------- */

static void offer(struct collection *all, enum fgw_setting_id id, struct candidate candidate)
{
    struct candidate *best = &all->best[id];
    candidate.given = true;
    if (!best->given) {
        *best = candidate;
        return;
    }
    const struct candidate *winner = candidate.rank >= best->rank ? &candidate : best;
    bool same_source = candidate.source == best->source;
    if (same_source && candidate.in_file != best->in_file && candidate.form == best->form) {
        load_error(all->load, "%s and %s are both set (%s); allowed: one of them", best->name,
                   candidate.name, candidate.where);
    } else if (same_source && strcmp(best->text, candidate.text) != 0) {
        load_warning(all->load, "%s and %s differ: %s counts (%s)", best->name, candidate.name,
                     winner->name, winner->where);
    }
    if (winner == &candidate) {
        *best = candidate;
    }
}

static unsigned rank_of(enum fgw_config_source source, unsigned within)
{
    return (unsigned)source * RANK_SOURCE + within;
}

/* The setting that NAME_FILE is a file of, or FGW_SETTING_COUNT. */
static enum fgw_setting_id setting_of_file_name(struct fgw_bytes name, const char *suffix)
{
    struct fgw_bytes end = fgw_bytes_str(suffix);
    if (!fgw_bytes_ends_with(name, end)) {
        return FGW_SETTING_COUNT;
    }
    struct fgw_bytes stem = fgw_bytes_sub(name, 0, name.len - end.len);
    enum fgw_setting_id id = suffix[0] == '_' ? setting_by_name(stem) : setting_by_flag(stem);
    bool fits = id != FGW_SETTING_COUNT &&
                (setting_is_secret(setting_of(id)) || setting_of(id)->kind == KIND_ACCESS_KEY);
    return fits ? id : FGW_SETTING_COUNT;
}

/* Offers NAME=VALUE of environment or file to its setting; false when no setting has that name. */
static bool offer_named(struct collection *all, struct fgw_bytes name, struct candidate candidate)
{
    enum fgw_setting_id id = setting_by_name(name);
    if (id != FGW_SETTING_COUNT) {
        candidate.rank = rank_of(candidate.source, RANK_OWN);
        offer(all, id, candidate);
        return true;
    }
    id = setting_of_file_name(name, "_FILE");
    if (id != FGW_SETTING_COUNT) {
        candidate.rank = rank_of(candidate.source, RANK_FILE);
        candidate.in_file = true;
        offer(all, id, candidate);
        return true;
    }
    for (size_t i = 0; i < alias_count(); i++) {
        if (fgw_bytes_eq_str(name, alias_at(i)->name)) {
            candidate.rank = rank_of(candidate.source, RANK_ALIAS - (unsigned)i);
            candidate.form = alias_at(i)->form;
            offer(all, alias_at(i)->id, candidate);
            return true;
        }
    }
    return false;
}

static void note_without_effect(struct collection *all, struct fgw_bytes name)
{
    (void)fgw_buf_appendf(&all->without_effect, "%s%.*s", all->without_effect.len == 0 ? "" : ", ",
                          FGW_FMT(name));
}

static bool is_fgw(struct fgw_bytes name)
{
    return fgw_bytes_starts_with(name, FGW_LIT("FGW_"));
}

static bool is_ribs(struct fgw_bytes name)
{
    return fgw_bytes_starts_with(name, FGW_LIT("RIBS_"));
}

/* Of the Go gateway, and of no meaning here: an existing settings.env must start. */
static bool is_legacy(struct fgw_bytes name)
{
    return is_ribs(name) || setting_is_legacy(name);
}

static const char *did_you_mean(struct collection *all, struct fgw_bytes name, bool flags)
{
    char storage[FLAG_SIZE];
    const char *nearest = setting_nearest(name, flags, storage);
    if (nearest == NULL) {
        return "see fgw config";
    }
    return fgw_arena_printf(&all->load->config->arena, "did you mean %s%s?", flags ? "--" : "",
                            nearest);
}

/* -- flags ---------------------------------------------------------------------------------- */

struct flag_reader {
    struct collection *all;
    int next;
    struct fgw_bytes name; /* without dashes */
    struct fgw_bytes inline_value;
    bool has_inline;
};

/* The value of the flag just read: behind "=", or the next argument. */
static bool flag_value(struct flag_reader *reader, const char **out)
{
    struct fgw_config_input *input = reader->all->load->input;
    if (reader->has_inline) {
        *out = fgw_arena_strdup(&reader->all->load->config->arena, reader->inline_value);
        return true;
    }
    if (reader->next < input->argc && strncmp(input->argv[reader->next], "--", 2) != 0) {
        *out = input->argv[reader->next++];
        return true;
    }
    load_error(reader->all->load, "--%.*s needs a value", FGW_FMT(reader->name));
    return false;
}

static bool read_verb_option(struct flag_reader *reader)
{
    struct fgw_config_input *input = reader->all->load->input;
    for (size_t i = 0; i < input->option_count; i++) {
        struct fgw_config_option *option = &input->options[i];
        if (!fgw_bytes_eq_str(reader->name, option->name)) {
            continue;
        }
        if (option->takes_value) {
            (void)flag_value(reader, &option->value);
        } else if (reader->has_inline) {
            load_error(reader->all->load, "--%s takes no value", option->name);
        } else {
            option->value = "";
        }
        return true;
    }
    return false;
}

/* What stands behind an unknown flag is most likely its value: one mistake, not two. */
static void skip_argument(struct flag_reader *reader)
{
    struct fgw_config_input *input = reader->all->load->input;
    if (!reader->has_inline && input->positional_max == 0 && reader->next < input->argc &&
        input->argv[reader->next][0] != '-') {
        reader->next++;
    }
}

static void read_setting_flag(struct flag_reader *reader)
{
    struct collection *all = reader->all;
    struct fgw_arena *arena = &all->load->config->arena;
    enum fgw_role role = all->load->config->role;
    enum fgw_setting_id id = setting_by_flag(reader->name);
    bool in_file = id == FGW_SETTING_COUNT;
    id = in_file ? setting_of_file_name(reader->name, "-file") : id;
    if (id == FGW_SETTING_COUNT) {
        load_error(all->load, "--%.*s is no flag; %s", FGW_FMT(reader->name),
                   did_you_mean(all, reader->name, true));
        skip_argument(reader);
        return;
    }
    struct candidate candidate = {.source = FGW_CONFIG_FROM_FLAG, .in_file = in_file};
    candidate.rank = rank_of(candidate.source, in_file ? RANK_FILE : RANK_OWN);
    candidate.name = fgw_arena_printf(arena, "--%.*s", FGW_FMT(reader->name));
    candidate.where = "command line";
    candidate.text = "on";
    bool bare = setting_of(id)->kind == KIND_BOOL && !reader->has_inline;
    if (!bare && !flag_value(reader, &candidate.text)) {
        return;
    }
    if ((setting_of(id)->roles & (unsigned)role) == 0) {
        load_error(all->load, "%s does not apply to fgw %s", candidate.name, fgw_role_name(role));
        return;
    }
    if (setting_is_secret(setting_of(id)) && !in_file) {
        load_warning(all->load, "%s shows the secret in the process list; %s-file does not",
                     candidate.name, candidate.name);
    }
    offer(all, id, candidate);
}

static void read_positional(struct collection *all, const char *argument)
{
    struct fgw_config_input *input = all->load->input;
    if (input->positional_count < input->positional_max) {
        input->positionals[input->positional_count++] = argument;
    } else {
        load_error(all->load, "unexpected argument \"%s\"", argument);
    }
}

static void read_flags(struct collection *all)
{
    struct fgw_config_input *input = all->load->input;
    struct flag_reader reader = {.all = all};
    bool flags = true;
    while (reader.next < input->argc) {
        const char *argument = input->argv[reader.next++];
        if (flags && strcmp(argument, "--") == 0) {
            flags = false;
            continue;
        }
        if (!flags || argument[0] != '-' || argument[1] == '\0') {
            read_positional(all, argument);
            continue;
        }
        struct fgw_bytes name = fgw_bytes_str(argument + (argument[1] == '-' ? 2 : 1));
        size_t equals = fgw_bytes_find_byte(name, '=');
        reader.has_inline = equals != SIZE_MAX;
        reader.name = fgw_bytes_sub(name, 0, equals);
        reader.inline_value = fgw_bytes_sub(name, reader.has_inline ? equals + 1 : 0, SIZE_MAX);
        if (argument[1] != '-') {
            load_error(all->load, "%s is no flag; flags begin with two dashes", argument);
        } else if (fgw_bytes_eq_str(reader.name, "config")) {
            (void)flag_value(&reader, &all->config_file);
        } else if (!read_verb_option(&reader)) {
            read_setting_flag(&reader);
        }
    }
}

/* -- environment ---------------------------------------------------------------------------- */

/* What Kubernetes puts into the environment for services called fgw and fgw-...:
 * FGW_SERVICE_HOST, FGW_X_SERVICE_PORT_HTTP, FGW_PORT=tcp://..., FGW_PORT_8078_TCP_ADDR. */
static bool is_kubernetes(struct fgw_bytes name, struct fgw_bytes value)
{
    bool link = fgw_bytes_starts_with(value, FGW_LIT("tcp://")) ||
                fgw_bytes_starts_with(value, FGW_LIT("udp://"));
    return fgw_bytes_ends_with(name, FGW_LIT("_SERVICE_HOST")) ||
           fgw_bytes_find(name, FGW_LIT("_SERVICE_PORT"), 0) != SIZE_MAX ||
           (fgw_bytes_ends_with(name, FGW_LIT("_PORT")) && link) ||
           fgw_bytes_find(name, FGW_LIT("_TCP"), 0) != SIZE_MAX ||
           fgw_bytes_find(name, FGW_LIT("_UDP"), 0) != SIZE_MAX;
}

static void read_variable(struct collection *all, struct fgw_bytes name, const char *value)
{
    struct fgw_arena *arena = &all->load->config->arena;
    if (is_kubernetes(name, fgw_bytes_str(value)) ||
        fgw_bytes_starts_with(name, FGW_LIT("FGW_TEST_"))) {
        return;
    }
    struct candidate candidate = {.source = FGW_CONFIG_FROM_ENVIRONMENT, .text = value};
    candidate.name = fgw_arena_strdup(arena, name);
    candidate.where = "environment";
    if (offer_named(all, name, candidate)) {
        return;
    }
    if (is_legacy(name)) {
        note_without_effect(all, name);
    } else {
        load_warning(all->load, "%.*s in the environment is no setting and has no effect; %s",
                     FGW_FMT(name), did_you_mean(all, name, false));
    }
}

static void read_environment(struct collection *all)
{
    for (char *const *entry = all->load->input->envp; entry != NULL && *entry != NULL; entry++) {
        const char *equals = strchr(*entry, '=');
        if (equals == NULL) {
            continue;
        }
        struct fgw_bytes name = fgw_bytes(*entry, (size_t)(equals - *entry));
        if (is_fgw(name) || is_ribs(name)) {
            read_variable(all, name, equals + 1);
        }
    }
}

/* -- files ---------------------------------------------------------------------------------- */

/* A view into the arena. */
static enum fgw_err read_whole(struct fgw_arena *arena, const char *path, size_t max,
                               struct fgw_bytes *out)
{
    struct fgw_buf content;
    fgw_buf_init(&content, max);
    enum fgw_err err = config_read_file(path, &content);
    if (err == FGW_OK) {
        *out = fgw_arena_copy(arena, fgw_buf_bytes(&content));
    }
    fgw_buf_deinit(&content);
    return err;
}

static const char *read_failure(enum fgw_err err)
{
    switch (err) {
    case FGW_ERR_NOT_FOUND:
        return "there is no such file";
    case FGW_ERR_TOO_LARGE:
        return "the file is too large";
    default:
        return "the file cannot be read";
    }
}

static void read_file_line(struct collection *all, const struct env_line *item)
{
    struct fgw_arena *arena = &all->load->config->arena;
    struct candidate candidate = {.source = FGW_CONFIG_FROM_FILE};
    candidate.name = fgw_arena_strdup(arena, item->key);
    candidate.where = fgw_arena_printf(arena, "%s:%u", all->config_file, item->line);
    candidate.text = fgw_arena_strdup(arena, item->value);
    if (offer_named(all, item->key, candidate)) {
        return;
    }
    if (is_legacy(item->key)) {
        note_without_effect(all, item->key);
    } else if (is_fgw(item->key)) {
        load_error(all->load, "%s (%s) is no setting; %s", candidate.name, candidate.where,
                   did_you_mean(all, item->key, false));
    }
}

static void read_config_file(struct collection *all)
{
    struct fgw_bytes rest;
    struct env_line item;
    const char *reason = NULL;
    unsigned line = 0;
    enum fgw_err err =
        read_whole(&all->load->config->arena, all->config_file, CONFIG_FILE_MAX, &rest);
    if (err != FGW_OK) {
        load_error(all->load, "--config %s: %s", all->config_file, read_failure(err));
        return;
    }
    while ((err = env_file_next(&rest, &line, &item, &reason)) != FGW_ERR_END) {
        if (err == FGW_OK) {
            read_file_line(all, &item);
        } else {
            load_error(all->load, "%s:%u: %s; allowed: KEY=VALUE, # comment", all->config_file,
                       line, reason);
        }
    }
}

/* -- from candidates to values -------------------------------------------------------------- */

static bool resolve_secret_file(struct load *load, struct candidate *candidate)
{
    struct fgw_bytes content;
    enum fgw_err err = read_whole(&load->config->arena, candidate->text, SECRET_FILE_MAX, &content);
    if (err != FGW_OK) {
        load_error(load, "%s=%s (%s): %s", candidate->name, candidate->text, candidate->where,
                   read_failure(err));
        return false;
    }
    for (const char *end = "\n\r"; *end != '\0'; end++) {
        if (content.len > 0 && content.ptr[content.len - 1] == (uint8_t)*end) {
            content.len--;
        }
    }
    if (content.len == 0 || fgw_bytes_find_byte(content, '\0') != SIZE_MAX) {
        load_error(load, "%s=%s (%s): the file is empty or has a NUL byte", candidate->name,
                   candidate->text, candidate->where);
        return false;
    }
    candidate->text = fgw_arena_strdup(&load->config->arena, content);
    return true;
}

/* Rewrites the value of an alias into the form of its setting. */
static bool resolve_form(struct load *load, enum fgw_setting_id id, struct candidate *candidate)
{
    struct fgw_arena *arena = &load->config->arena;
    struct fgw_bytes text = fgw_bytes_trim(fgw_bytes_str(candidate->text));
    if (candidate->form == ALIAS_LOG_LEVELS) {
        enum fgw_log_level level;
        if (level_from_list(text, &level) != FGW_OK) {
            load_error(load,
                       "%s=%s (%s): unknown level; allowed: NAME=LEVEL, separated by commas, "
                       "with the levels of FGW_LOG_LEVEL",
                       candidate->name, candidate->text, candidate->where);
            return false;
        }
        candidate->text = fgw_arena_printf(arena, "%s", fgw_log_level_name(level));
    } else if (candidate->form == ALIAS_OPS_PORT) {
        struct fgw_bytes usual = fgw_bytes_str(setting_default(id, load->config->role));
        size_t colon = fgw_bytes_find_byte(usual, ':');
        candidate->text = fgw_arena_printf(arena, "%.*s:%.*s",
                                           FGW_FMT(fgw_bytes_sub(usual, 0, colon)), FGW_FMT(text));
    }
    return true;
}

static void report_bad_value(struct load *load, const struct setting *setting,
                             const struct candidate *candidate, const char *reason)
{
    const char *name = strcmp(candidate->name, setting->name) == 0 ? "" : candidate->name;
    const char *unit = setting_is_secret(setting) ? " characters" : "";
    char shown[128];
    (void)snprintf(shown, sizeof shown, "%s", candidate->text);
    load_error(load, "%s=%s (%s%s%s): %s; allowed: %s%s", setting->name,
               setting_is_secret(setting) ? "***" : shown, candidate->where,
               *name == '\0' ? "" : " ", name, reason, setting->allowed, unit);
}

static void *field_of(struct fgw_config *config, const struct setting *setting)
{
    return (char *)config + setting->offset;
}

static void settle(struct load *load, enum fgw_setting_id id, struct candidate *candidate)
{
    const struct setting *setting = setting_of(id);
    struct fgw_config_value *value = &load->config->values[id];
    bool used = (setting->roles & (unsigned)load->config->role) != 0;
    bool may_be_empty = setting->kind == KIND_LISTEN_OR_OFF;
    struct candidate usual = {
        .name = setting->name, .where = "default", .text = setting_default(id, load->config->role)};
    if (candidate->given && candidate->in_file && !resolve_secret_file(load, candidate)) {
        return;
    }
    if (candidate->given && candidate->text[0] != '\0' && !resolve_form(load, id, candidate)) {
        return;
    }
    bool given = candidate->given && (candidate->text[0] != '\0' || may_be_empty);
    const struct candidate *taken = given ? candidate : &usual;
    value->source = taken->source;
    bool plain = given && strcmp(taken->name, setting->name) == 0;
    value->where = !given || plain
                       ? taken->where
                       : fgw_arena_printf(&load->config->arena, "%s %s", taken->where, taken->name);
    if (!given && (usual.text[0] == '\0' || usual.text[0] == '=')) {
        return;
    }
    value->text = taken->text;
    if (!used && !given) {
        return;
    }
    struct value_parser parser = {.arena = &load->config->arena,
                                  .setting = setting,
                                  .from_alias = given && taken->rank % RANK_SOURCE <= RANK_ALIAS};
    if (value_parse(&parser, taken->text, field_of(load->config, setting)) != FGW_OK) {
        report_bad_value(load, setting, taken, parser.reason);
    }
}

static void preset_enums(struct fgw_config *config)
{
    for (unsigned id = 0; id < FGW_SETTING_COUNT; id++) {
        const struct setting *setting = setting_of((enum fgw_setting_id)id);
        if (setting->kind == KIND_ENUM) {
            *(int *)field_of(config, setting) = FGW_CONFIG_UNSET;
        }
    }
}

static void warn_about_legacy(struct collection *all)
{
    if (all->without_effect.len > 0) {
        load_warning(all->load, "settings of the Go gateway without effect here: %.*s",
                     FGW_FMT(fgw_buf_bytes(&all->without_effect)));
    }
}

enum fgw_err fgw_config_load(struct fgw_config_input *input, struct fgw_config *out,
                             struct fgw_buf *errors, struct fgw_buf *warnings)
{
    struct load load = {input, out, errors, warnings};
    size_t errors_before = errors->len;
    memset(out, 0, sizeof *out);
    out->role = input->role;
    fgw_arena_init(&out->arena, 0);
    preset_enums(out);

    struct collection *all = fgw_xcalloc(1, sizeof *all);
    all->load = &load;
    fgw_buf_init(&all->without_effect, 900);
    read_flags(all);
    read_environment(all);
    if (all->config_file != NULL) {
        read_config_file(all);
    }
    warn_about_legacy(all);
    for (unsigned id = 0; id < FGW_SETTING_COUNT; id++) {
        settle(&load, (enum fgw_setting_id)id, &all->best[id]);
    }
    fgw_buf_deinit(&all->without_effect);
    fgw_xfree(all);

    if (errors->len == errors_before) {
        derive_values(&load);
    }
    check_together(&load);
    if (out->values[FGW_SETTING_LIFECYCLE_DAY_S].source != FGW_CONFIG_FROM_DEFAULT) {
        load_warning(&load,
                     "FGW_LIFECYCLE_DAY_S (%s) has no effect: lifecycle rules are not in "
                     "this build",
                     out->values[FGW_SETTING_LIFECYCLE_DAY_S].where);
    }
    if (errors->len != errors_before) {
        fgw_config_deinit(out);
        return FGW_ERR_CONFIG;
    }
    return FGW_OK;
}

void fgw_config_deinit(struct fgw_config *config)
{
    fgw_arena_deinit(&config->arena);
    memset(config, 0, sizeof *config);
}
