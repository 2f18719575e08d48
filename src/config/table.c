/* table.c: settings.def as arrays, and look-ups by name. Constant data: any thread. */
#include <stdio.h>

#include "base/check.h"
#include "config/config_internal.h"

/* The role words of settings.def. */
enum {
    SERVE = FGW_ROLE_SERVE,
    PROXY = FGW_ROLE_PROXY,
    KURI = FGW_ROLE_KURI,
    DB_INIT = FGW_ROLE_DB_INIT,
    TOOL = FGW_ROLE_TOOL
};

static const struct setting SETTINGS[FGW_SETTING_COUNT] = {
#define FGW_SETTING(name, field, kind, roles, value, allowed, help) \
    {"FGW_" #name, KIND_##kind, roles, value, allowed, help, offsetof(struct fgw_config, field)},
#define FGW_SETTING_DEFAULT(name, role, value)
#define FGW_SETTING_ALIAS(alias, name, form)
#include "config/settings.def"
#undef FGW_SETTING
#undef FGW_SETTING_DEFAULT
#undef FGW_SETTING_ALIAS
};

static const struct {
    enum fgw_setting_id id;
    int role;
    const char *text;
} DEFAULTS[] = {
#define FGW_SETTING(name, field, kind, roles, value, allowed, help)
#define FGW_SETTING_DEFAULT(name, role, value) {FGW_SETTING_##name, role, value},
#define FGW_SETTING_ALIAS(alias, name, form)
#include "config/settings.def"
#undef FGW_SETTING
#undef FGW_SETTING_DEFAULT
#undef FGW_SETTING_ALIAS
};

static const struct alias ALIASES[] = {
#define FGW_SETTING(name, field, kind, roles, value, allowed, help)
#define FGW_SETTING_DEFAULT(name, role, value)
#define FGW_SETTING_ALIAS(alias, name, form) {alias, FGW_SETTING_##name, ALIAS_##form},
#include "config/settings.def"
#undef FGW_SETTING
#undef FGW_SETTING_DEFAULT
#undef FGW_SETTING_ALIAS
};

const char *fgw_role_name(enum fgw_role role)
{
    switch (role) {
    case FGW_ROLE_SERVE:
        return "serve";
    case FGW_ROLE_PROXY:
        return "proxy";
    case FGW_ROLE_KURI:
        return "kuri";
    case FGW_ROLE_DB_INIT:
        return "db-init";
    case FGW_ROLE_TOOL:
        break;
    }
    return "tool";
}

const struct setting *setting_of(enum fgw_setting_id id)
{
    return &SETTINGS[id];
}

const char *fgw_setting_name(enum fgw_setting_id id)
{
    return SETTINGS[id].name;
}

size_t alias_count(void)
{
    return FGW_COUNT_OF(ALIASES);
}

const struct alias *alias_at(size_t index)
{
    return &ALIASES[index];
}

/* Its caches, its prefetching, and the address of its internal API. */
static const char *const LEGACY[] = {
    "FGW_INTERNAL_API_BINDADDR", "FGW_L1_CACHE_SIZE_MIB", "FGW_L1_POLICY",
    "FGW_L2_CACHE_ENABLED",      "FGW_L2_CACHE_PATH",     "FGW_L2_CACHE_SIZE_GB",
    "FGW_PREFETCH_DEPTH",        "FGW_PREFETCH_ENABLED",  "FGW_PREFETCH_WORKERS"};

size_t legacy_count(void)
{
    return FGW_COUNT_OF(LEGACY);
}

const char *legacy_at(size_t index)
{
    return LEGACY[index];
}

bool setting_is_legacy(struct fgw_bytes name)
{
    size_t i = 0;
    while (i < FGW_COUNT_OF(LEGACY) && !fgw_bytes_eq_str(name, LEGACY[i])) {
        i++;
    }
    return i < FGW_COUNT_OF(LEGACY);
}

const char *setting_default(enum fgw_setting_id id, enum fgw_role role)
{
    for (size_t i = 0; i < FGW_COUNT_OF(DEFAULTS); i++) {
        if (DEFAULTS[i].id == id && DEFAULTS[i].role == (int)role) {
            return DEFAULTS[i].text;
        }
    }
    return SETTINGS[id].default_text;
}

bool setting_is_secret(const struct setting *setting)
{
    return setting->kind == KIND_SECRET || setting->kind == KIND_SECRETS;
}

static char flag_letter(char c)
{
    bool upper = c >= 'A' && c <= 'Z';
    return c == '_' ? '-' : (char)(upper ? c + ('a' - 'A') : c);
}

void setting_flag(const struct setting *setting, char out[FLAG_SIZE])
{
    const char *from = setting->name + sizeof "FGW_" - 1;
    size_t len = 0;
    for (; len < FLAG_SIZE - 1 && from[len] != '\0'; len++) {
        out[len] = flag_letter(from[len]);
    }
    out[len] = '\0';
}

enum fgw_setting_id setting_by_name(struct fgw_bytes name)
{
    unsigned id = 0;
    while (id < FGW_SETTING_COUNT && !fgw_bytes_eq_str(name, SETTINGS[id].name)) {
        id++;
    }
    return (enum fgw_setting_id)id;
}

enum fgw_setting_id setting_by_flag(struct fgw_bytes flag)
{
    for (unsigned id = 0; id < FGW_SETTING_COUNT; id++) {
        char text[FLAG_SIZE];
        setting_flag(&SETTINGS[id], text);
        if (fgw_bytes_eq_str(flag, text)) {
            return (enum fgw_setting_id)id;
        }
    }
    return FGW_SETTING_COUNT;
}

/* Edit distance with neighbours swapped as one step (optimal string alignment). */
static size_t distance(struct fgw_bytes a, struct fgw_bytes b)
{
    size_t rows[3][FLAG_SIZE + 1];
    size_t *before = rows[0];
    size_t *last = rows[1];
    size_t *now = rows[2];
    for (size_t j = 0; j <= b.len; j++) {
        last[j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t best = last[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1] &&
                before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            now[j] = best;
        }
        size_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[b.len];
}

struct nearest {
    struct fgw_bytes name;
    size_t distance;
    bool found;
};

static void consider(struct nearest *nearest, const char *candidate, char storage[FLAG_SIZE])
{
    struct fgw_bytes text = fgw_bytes_str(candidate);
    if (text.len >= FLAG_SIZE) {
        return;
    }
    size_t steps = distance(nearest->name, text);
    if (steps < nearest->distance) {
        nearest->distance = steps;
        nearest->found = true;
        memcpy(storage, candidate, text.len + 1);
    }
}

const char *setting_nearest(struct fgw_bytes name, bool flags, char storage[FLAG_SIZE])
{
    if (name.len >= FLAG_SIZE) {
        return NULL;
    }
    size_t prefix = flags ? 0 : sizeof "FGW_" - 1;
    size_t meaningful = name.len > prefix ? name.len - prefix : 0;
    struct nearest nearest = {name, 2 + meaningful / 4, false};
    for (unsigned id = 0; id < FGW_SETTING_COUNT; id++) {
        char flag[FLAG_SIZE];
        setting_flag(&SETTINGS[id], flag);
        consider(&nearest, flags ? flag : SETTINGS[id].name, storage);
    }
    for (size_t i = 0; !flags && i < FGW_COUNT_OF(ALIASES); i++) {
        consider(&nearest, ALIASES[i].name, storage);
    }
    return nearest.found ? storage : NULL;
}
