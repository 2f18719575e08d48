/* lists.c: values of several items: addresses, hosts, names, nodes, secrets, replication. Items are
 * separated by commas; blanks around them are ignored, an empty item is a mistake. No I/O: names
 * are not looked up. */
#include <arpa/inet.h>

#include "config/config_internal.h"

enum { ITEM_MAX = 64 };

/* -- forms shared by several kinds ---------------------------------------------------------- */

bool text_only(struct fgw_bytes text, const char *more, size_t least, size_t most)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!plain && (c == '\0' || strchr(more, c) == NULL)) {
            return false;
        }
    }
    return text.len >= least && text.len <= most;
}

bool text_is_host_name(struct fgw_bytes text)
{
    static const char MORE[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-._";
    return text_only(text, MORE, 1, 253) && text.ptr[0] != '-' && text.ptr[0] != '.';
}

static bool port_from_text(struct fgw_bytes text, uint16_t *out)
{
    uint64_t value;
    if (fgw_bytes_to_u64(text, &value) != FGW_OK || value < 1 || value > UINT16_MAX) {
        return false;
    }
    *out = (uint16_t)value;
    return true;
}

/* Cuts "host:port", "[v6]:port", "host", "[v6]" and a bare "v6" apart; the port may be missing
 * (*out_port empty). */
static bool cut_address(struct fgw_bytes text, struct fgw_bytes *out_host,
                        struct fgw_bytes *out_port)
{
    *out_port = fgw_bytes(NULL, 0);
    if (text.len > 0 && text.ptr[0] == '[') {
        size_t end = fgw_bytes_find_byte(text, ']');
        if (end == SIZE_MAX) {
            return false;
        }
        *out_host = fgw_bytes_sub(text, 1, end - 1);
        struct fgw_bytes rest = fgw_bytes_sub(text, end + 1, SIZE_MAX);
        if (rest.len == 0) {
            return true;
        }
        *out_port = fgw_bytes_sub(rest, 1, SIZE_MAX);
        return rest.ptr[0] == ':' && rest.len > 1;
    }
    size_t colon = fgw_bytes_find_byte(text, ':');
    bool several = colon != SIZE_MAX && fgw_bytes_find(text, FGW_LIT(":"), colon + 1) != SIZE_MAX;
    if (colon == SIZE_MAX || several) {
        *out_host = text;
        return true;
    }
    *out_host = fgw_bytes_sub(text, 0, colon);
    *out_port = fgw_bytes_sub(text, colon + 1, SIZE_MAX);
    return out_port->len > 0;
}

bool text_is_url(struct fgw_bytes text)
{
    struct fgw_bytes host;
    struct fgw_bytes port;
    uint16_t number;
    size_t scheme = fgw_bytes_starts_with(text, FGW_LIT("http://"))    ? 7
                    : fgw_bytes_starts_with(text, FGW_LIT("https://")) ? 8
                                                                       : 0;
    struct fgw_bytes rest = fgw_bytes_sub(text, scheme, SIZE_MAX);
    if (fgw_bytes_ends_with(rest, FGW_LIT("/"))) {
        rest = fgw_bytes_sub(rest, 0, rest.len - 1);
    }
    if (scheme == 0 || !cut_address(rest, &host, &port) || host.len == 0) {
        return false;
    }
    bool bracketed = rest.ptr[0] == '[';
    return (port.len == 0 || port_from_text(port, &number)) &&
           (bracketed || text_is_host_name(host));
}

/* Splits into trimmed items; the count, or 0 with a reason. */
static size_t split_items(struct value_parser *parser, struct fgw_bytes text,
                          struct fgw_bytes items[ITEM_MAX])
{
    size_t count = 0;
    struct fgw_bytes item;
    while (fgw_bytes_split(&text, ',', &item)) {
        if (count == ITEM_MAX) {
            (void)refuse(parser, "more than %d items", ITEM_MAX);
            return 0;
        }
        items[count] = fgw_bytes_trim(item);
        if (items[count++].len == 0) {
            (void)refuse(parser, "an empty item in the list");
            return 0;
        }
    }
    return count;
}

/* -- listeners ------------------------------------------------------------------------------ */

static bool listen_host(struct fgw_arena *arena, struct fgw_bytes host, const char **out)
{
    uint8_t parsed[sizeof(struct in6_addr)];
    const char *text = fgw_arena_strdup(arena, host);
    if (host.len == 0 || strcmp(text, "*") == 0) {
        text = "0.0.0.0";
    } else if (strcmp(text, "localhost") == 0) {
        text = "127.0.0.1";
    }
    *out = text;
    return inet_pton(AF_INET, text, parsed) == 1 || inet_pton(AF_INET6, text, parsed) == 1;
}

enum fgw_err parse_listen(struct value_parser *parser, struct fgw_bytes text,
                          struct fgw_config_addresses *out)
{
    struct fgw_bytes items[ITEM_MAX];
    size_t count = text.len == 0 ? 0 : split_items(parser, text, items);
    if (count == 0 && text.len > 0) {
        return FGW_ERR_PARSE;
    }
    struct fgw_config_address *list = fgw_arena_zalloc(parser->arena, (count + 1) * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct fgw_bytes host;
        struct fgw_bytes port;
        if (!cut_address(items[i], &host, &port) || port.len == 0) {
            return refuse(parser, "%.*s names no port", FGW_FMT(items[i]));
        }
        if (!port_from_text(port, &list[i].port)) {
            return refuse(parser, "the port of %.*s is not 1..65535", FGW_FMT(items[i]));
        }
        if (!listen_host(parser->arena, host, &list[i].host)) {
            return refuse(parser, "%.*s is no numeric address", FGW_FMT(items[i]));
        }
        for (size_t j = 0; j < i; j++) {
            if (list[j].port == list[i].port && strcmp(list[j].host, list[i].host) == 0) {
                return refuse(parser, "%.*s is named twice", FGW_FMT(items[i]));
            }
        }
    }
    *out = (struct fgw_config_addresses){list, count};
    return FGW_OK;
}

/* -- hosts ---------------------------------------------------------------------------------- */

enum fgw_err parse_hosts(struct value_parser *parser, struct fgw_bytes text,
                         struct fgw_config_addresses *out)
{
    struct fgw_bytes items[ITEM_MAX];
    size_t count = split_items(parser, text, items);
    if (count == 0) {
        return FGW_ERR_PARSE;
    }
    struct fgw_config_address *list = fgw_arena_zalloc(parser->arena, count * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct fgw_bytes host;
        struct fgw_bytes port;
        uint8_t parsed[sizeof(struct in6_addr)];
        if (!cut_address(items[i], &host, &port)) {
            return refuse(parser, "%.*s is no host", FGW_FMT(items[i]));
        }
        if (port.len > 0 && !port_from_text(port, &list[i].port)) {
            return refuse(parser, "the port of %.*s is not 1..65535", FGW_FMT(items[i]));
        }
        list[i].host = fgw_arena_strdup(parser->arena, host);
        if (!text_is_host_name(host) && inet_pton(AF_INET6, list[i].host, parsed) != 1) {
            return refuse(parser, "%.*s is no host", FGW_FMT(items[i]));
        }
    }
    *out = (struct fgw_config_addresses){list, count};
    return FGW_OK;
}

/* -- names, secrets ------------------------------------------------------------------------- */

static enum fgw_err check_item(struct value_parser *parser, struct fgw_bytes item)
{
    static const char UPPER[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-";
    switch (parser->setting->kind) {
    case KIND_SECRETS:
        return item.len >= 32 && item.len <= 1024
                   ? FGW_OK
                   : refuse(parser, "a secret of %zu characters", item.len);
    case KIND_DOMAINS:
        return text_is_host_name(item) ? FGW_OK
                                       : refuse(parser, "%.*s is no host name", FGW_FMT(item));
    default:
        return text_only(item, UPPER, 1, 32)
                   ? FGW_OK
                   : refuse(parser, "%.*s is not of the form allowed", FGW_FMT(item));
    }
}

enum fgw_err parse_list(struct value_parser *parser, struct fgw_bytes text,
                        struct fgw_config_list *out)
{
    struct fgw_bytes items[ITEM_MAX];
    size_t count = split_items(parser, text, items);
    if (count == 0) {
        return FGW_ERR_PARSE;
    }
    const char **list = fgw_arena_zalloc(parser->arena, count * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        enum fgw_err err = check_item(parser, items[i]);
        if (err != FGW_OK) {
            return err;
        }
        list[i] = fgw_arena_strdup(parser->arena, items[i]);
    }
    *out = (struct fgw_config_list){list, count};
    return FGW_OK;
}

/* -- nodes ---------------------------------------------------------------------------------- */

bool text_is_node_id(struct fgw_bytes id)
{
    if (!text_only(id, "-", 1, 32)) {
        return false;
    }
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] != '-') {
            return true;
        }
    }
    return false;
}

bool fgw_config_node_id_valid(const char *node_id)
{
    return text_is_node_id(fgw_bytes_str(node_id));
}

enum fgw_err parse_nodes(struct value_parser *parser, struct fgw_bytes text,
                         struct fgw_config_nodes *out)
{
    struct fgw_bytes items[ITEM_MAX];
    size_t count = split_items(parser, text, items);
    if (count == 0) {
        return FGW_ERR_PARSE;
    }
    struct fgw_config_node *list = fgw_arena_zalloc(parser->arena, count * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        size_t colon = fgw_bytes_find_byte(items[i], ':');
        if (colon == SIZE_MAX) {
            return refuse(parser, "%.*s is not ID:URL", FGW_FMT(items[i]));
        }
        list[i].id = fgw_arena_strdup(parser->arena, fgw_bytes_sub(items[i], 0, colon));
        struct fgw_bytes url = fgw_bytes_sub(items[i], colon + 1, SIZE_MAX);
        list[i].url = fgw_arena_strdup(parser->arena, url);
        if (!fgw_config_node_id_valid(list[i].id)) {
            return refuse(parser, "%.*s does not begin with a node id", FGW_FMT(items[i]));
        }
        if (!text_is_url(url)) {
            return refuse(parser, "%.*s has no http(s)://HOST:PORT", FGW_FMT(items[i]));
        }
    }
    *out = (struct fgw_config_nodes){list, count};
    return FGW_OK;
}

/* -- replication ---------------------------------------------------------------------------- */

static bool copies_from_text(struct fgw_bytes text, unsigned *out)
{
    uint64_t value;
    if (fgw_bytes_to_u64(text, &value) != FGW_OK || value < 1 || value > 32) {
        return false;
    }
    *out = (unsigned)value;
    return true;
}

static enum fgw_err parse_data_centres(struct value_parser *parser, struct fgw_bytes text,
                                       struct fgw_config_replication *out)
{
    static const char UPPER[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.";
    struct fgw_bytes items[ITEM_MAX];
    size_t count = split_items(parser, text, items);
    if (count == 0) {
        return FGW_ERR_PARSE;
    }
    struct fgw_config_copies *list = fgw_arena_zalloc(parser->arena, count * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        size_t equals = fgw_bytes_find_byte(items[i], '=');
        struct fgw_bytes name = fgw_bytes_sub(items[i], 0, equals);
        if (equals == SIZE_MAX || !text_only(name, UPPER, 1, 64) ||
            !copies_from_text(fgw_bytes_sub(items[i], equals + 1, SIZE_MAX), &list[i].copies)) {
            return refuse(parser, "%.*s is not DC=N with N of 1..32", FGW_FMT(items[i]));
        }
        list[i].data_centre = fgw_arena_strdup(parser->arena, name);
    }
    *out = (struct fgw_config_replication){true, list, count};
    return FGW_OK;
}

enum fgw_err parse_replication(struct value_parser *parser, struct fgw_bytes text,
                               struct fgw_config_replication *out)
{
    struct fgw_bytes simple = FGW_LIT("SimpleStrategy:");
    struct fgw_bytes network = FGW_LIT("NetworkTopologyStrategy:");
    if (fgw_bytes_starts_with(text, network)) {
        return parse_data_centres(parser, fgw_bytes_sub(text, network.len, SIZE_MAX), out);
    }
    struct fgw_config_copies *one = fgw_arena_zalloc(parser->arena, sizeof *one);
    if (!fgw_bytes_starts_with(text, simple) ||
        !copies_from_text(fgw_bytes_sub(text, simple.len, SIZE_MAX), &one->copies)) {
        return refuse(parser,
                      "neither SimpleStrategy nor NetworkTopologyStrategy with 1..32 copies");
    }
    *out = (struct fgw_config_replication){false, one, 1};
    return FGW_OK;
}
