/* print.c: settings for people and programs: the table and the JSON document of `fgw config`, the
 * flags of `fgw help VERB`, and docs/guide/settings.md. Secrets are masked everywhere. */
#include <jansson.h>
#include <stdio.h>

#include "base/check.h"
#include "config/config_internal.h"

static const enum fgw_role ROLES[] = {FGW_ROLE_SERVE, FGW_ROLE_PROXY, FGW_ROLE_KURI,
                                      FGW_ROLE_DB_INIT};

static bool used_by(enum fgw_setting_id id, enum fgw_role role)
{
    return (setting_of(id)->roles & (unsigned)role) != 0;
}

static const char *shown(const struct fgw_config *config, enum fgw_setting_id id)
{
    const char *text = config->values[id].text;
    if (text == NULL) {
        return "";
    }
    return setting_is_secret(setting_of(id)) ? "********" : text;
}

static const char *origin(const struct fgw_config *config, enum fgw_setting_id id)
{
    const struct fgw_config_value *value = &config->values[id];
    if (value->text == NULL) {
        return "not set";
    }
    return value->where;
}

void fgw_config_print_table(const struct fgw_config *config, struct fgw_buf *out)
{
    (void)fgw_buf_appendf(out, "# effective settings of fgw %s\n", fgw_role_name(config->role));
    for (unsigned i = 0; i < FGW_SETTING_COUNT; i++) {
        enum fgw_setting_id id = (enum fgw_setting_id)i;
        if (used_by(id, config->role)) {
            (void)fgw_buf_appendf(out, "%-24s %-40s %s\n", setting_of(id)->name, shown(config, id),
                                  origin(config, id));
        }
    }
    for (unsigned i = 0; i < FGW_SETTING_COUNT; i++) {
        enum fgw_setting_id id = (enum fgw_setting_id)i;
        if (!used_by(id, config->role) && config->values[i].source != FGW_CONFIG_FROM_DEFAULT) {
            (void)fgw_buf_appendf(out, "%-24s %-40s %s, not used by fgw %s\n", setting_of(id)->name,
                                  shown(config, id), origin(config, id),
                                  fgw_role_name(config->role));
        }
    }
}

static const char *source_name(const struct fgw_config_value *value)
{
    static const char *const NAMES[] = {"default", "file", "environment", "flag"};
    return value->text == NULL ? "unset" : NAMES[value->source];
}

void fgw_config_print_json(const struct fgw_config *config, struct fgw_buf *out)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < FGW_SETTING_COUNT; i++) {
        enum fgw_setting_id id = (enum fgw_setting_id)i;
        const struct fgw_config_value *value = &config->values[i];
        /* A byte string that is no UTF-8 has no JSON form. */
        json_t *text = value->text == NULL ? json_null() : json_string(shown(config, id));
        json_t *row = json_pack("{s:s, s:o, s:s, s:s, s:b}", "name", setting_of(id)->name, "value",
                                text == NULL ? json_string("(not UTF-8)") : text, "source",
                                source_name(value), "where", origin(config, id), "used",
                                (int)used_by(id, config->role));
        FGW_CHECK(row != NULL);
        (void)json_array_append_new(list, row);
    }
    json_t *document = json_pack("{s:i, s:s, s:o}", "schema_version", 1, "role",
                                 fgw_role_name(config->role), "settings", list);
    char *text = json_dumps(document, JSON_INDENT(2));
    FGW_CHECK(text != NULL);
    (void)fgw_buf_appendf(out, "%s\n", text);
    fgw_xfree(text);
    json_decref(document);
}

static const char *default_words(enum fgw_setting_id id, enum fgw_role role)
{
    const char *text = setting_default(id, role);
    return text[0] == '=' ? text + 1 : text;
}

/* The default, or "127.0.0.1:8078 (proxy: ..., kuri: ...)" where roles differ. */
static void append_default(struct fgw_buf *out, enum fgw_setting_id id)
{
    enum fgw_role first = FGW_ROLE_TOOL;
    for (size_t i = FGW_COUNT_OF(ROLES); i > 0; i--) {
        first = used_by(id, ROLES[i - 1]) ? ROLES[i - 1] : first;
    }
    const char *usual = default_words(id, first);
    (void)fgw_buf_append_str(out, usual[0] == '\0' ? "not set" : usual);
    bool differs = false;
    for (size_t i = 0; i < FGW_COUNT_OF(ROLES); i++) {
        const char *own = default_words(id, ROLES[i]);
        if (used_by(id, ROLES[i]) && strcmp(own, usual) != 0) {
            (void)fgw_buf_appendf(out, "%s%s: %s", differs ? ", " : " (", fgw_role_name(ROLES[i]),
                                  own[0] == '\0' ? "not set" : own);
            differs = true;
        }
    }
    (void)fgw_buf_append_str(out, differs ? ")" : "");
}

static void append_allowed(struct fgw_buf *out, const struct setting *setting)
{
    for (const char *c = setting->allowed; *c != '\0'; c++) {
        if (*c == '|') {
            (void)fgw_buf_append_str(out, ", ");
        } else {
            (void)fgw_buf_append_byte(out, (uint8_t)*c);
        }
    }
    if (setting_is_secret(setting)) {
        (void)fgw_buf_append_str(out, setting->kind == KIND_SECRETS ? " characters each"
                                                                    : " characters");
    }
}

void fgw_config_print_help(enum fgw_role role, struct fgw_buf *out)
{
    (void)fgw_buf_append_str(out, "  --config FILE\n      settings file: KEY=VALUE lines\n");
    for (unsigned i = 0; i < FGW_SETTING_COUNT; i++) {
        enum fgw_setting_id id = (enum fgw_setting_id)i;
        const struct setting *setting = setting_of(id);
        if (!used_by(id, role)) {
            continue;
        }
        char flag[FLAG_SIZE];
        setting_flag(setting, flag);
        const char *usual = default_words(id, role);
        (void)fgw_buf_appendf(out, "  --%s (%s)\n      %s\n      allowed: ", flag, setting->name,
                              setting->help);
        append_allowed(out, setting);
        (void)fgw_buf_appendf(out, "; default: %s\n", usual[0] == '\0' ? "not set" : usual);
    }
}

static void append_row(struct fgw_buf *out, enum fgw_setting_id id)
{
    const struct setting *setting = setting_of(id);
    char flag[FLAG_SIZE];
    setting_flag(setting, flag);
    (void)fgw_buf_appendf(out, "### %s\n\n%s.\n\n- flag: `--%s`", setting->name, setting->help,
                          flag);
    if (setting_is_secret(setting) || setting->kind == KIND_ACCESS_KEY) {
        (void)fgw_buf_appendf(out, "; from a file: `%s_FILE`, `--%s-file`", setting->name, flag);
    }
    (void)fgw_buf_append_str(out, "\n- default: ");
    append_default(out, id);
    (void)fgw_buf_append_str(out, "\n- allowed: ");
    append_allowed(out, setting);
    (void)fgw_buf_append_str(out, "\n- used by: ");
    const char *separator = "";
    for (size_t i = 0; i < FGW_COUNT_OF(ROLES); i++) {
        if (used_by(id, ROLES[i])) {
            (void)fgw_buf_appendf(out, "%s%s", separator, fgw_role_name(ROLES[i]));
            separator = ", ";
        }
    }
    separator = "\n- aliases: ";
    for (size_t i = 0; i < alias_count(); i++) {
        if (alias_at(i)->id == id) {
            (void)fgw_buf_appendf(out, "%s`%s`", separator, alias_at(i)->name);
            separator = ", ";
        }
    }
    (void)fgw_buf_append_str(out, "\n\n");
}

void fgw_config_print_markdown(struct fgw_buf *out)
{
    (void)fgw_buf_append_str(
        out,
        "# Settings\n\n"
        "Made by `fgw config --markdown` from src/config/settings.def; `tools/check_docs` holds "
        "it against the binary.\n\n"
        "Flags win over environment, environment over the file of `--config`, the file over "
        "defaults. Within one source a setting's own name wins over its aliases. A setting that "
        "is empty counts as not set, except `FGW_OPS_LISTEN`, which it turns off. `fgw config "
        "[serve|proxy|kuri|db-init]` prints the effective values and where each came from.\n\n"
        "The file has lines `KEY=VALUE`, `#` begins a comment, `export` may stand in front, quotes "
        "are taken off and nothing is expanded. A size takes B, KiB, MiB, GiB, TiB; a duration ms, "
        "s, m, h, d.\n\n"
        "Mistakes stop the start with exit code 2 before anything is opened, all of them at once: "
        "an unknown flag, an unknown `FGW_` name in a file, a bad value. An unknown `FGW_` name in "
        "the environment and unknown `RIBS_` names are warnings. `RIBS_LOGLEVEL` takes "
        "`name=level,...` and the most verbose level named counts; `RIBS_PROMETHEUS_PORT` is the "
        "port of `FGW_OPS_LISTEN`; `RIBS_S3API_REGION` may be in upper case (`EU`). What Kubernetes adds for a service called fgw "
        "(`FGW_SERVICE_HOST`, `FGW_PORT=tcp://...`) is ignored.\n\n"
        "Names of the Go gateway that are understood stand below as aliases. Warnings without "
        "effect, also in a file: all other `RIBS_` names");
    for (size_t i = 0; i < legacy_count(); i++) {
        (void)fgw_buf_appendf(out, ", `%s`", legacy_at(i));
    }
    (void)fgw_buf_append_str(out, ".\n\n");
    for (unsigned id = 0; id < FGW_SETTING_COUNT; id++) {
        append_row(out, (enum fgw_setting_id)id);
    }
    out->len -= 1;
}
