/* unixfs_decode.c: the decoder of unixfs.h.
 *
 * dag-pb is strict: only its own fields with their wire types, a link's fields in order and at most
 * once, all links side by side (data may stand before or behind them, as old writers put it first).
 * UnixFS data is protobuf: unknown fields are skipped, block sizes may be packed.
 */
#include "cid/protobuf.h"
#include "cid/unixfs.h"

enum { NODE_DATA = 1, NODE_LINKS = 2 };
enum { LINK_HASH = 1, LINK_NAME = 2, LINK_TSIZE = 3 };
enum { DATA_TYPE = 1, DATA_DATA = 2, DATA_FILE_SIZE = 3, DATA_BLOCK_SIZES = 4 };

/* What one pass over the node found. */
struct outline {
    struct fgw_bytes links; /* the run of link fields */
    size_t link_count;
    bool has_data;
    struct fgw_bytes data;
};

static enum fgw_err outline_node(struct fgw_bytes block, struct outline *outline)
{
    struct fgw_bytes rest = block;
    bool links_closed = false;
    while (rest.len > 0) {
        const uint8_t *start = rest.ptr;
        struct fgw_protobuf_field field;
        enum fgw_err err = fgw_protobuf_take(&rest, &field);
        if (err != FGW_OK || field.wire != FGW_PROTOBUF_BYTES) {
            return FGW_ERR_CORRUPT;
        }
        if (field.number == NODE_LINKS && !links_closed) {
            if (outline->link_count == 0) {
                outline->links.ptr = start;
            }
            outline->link_count++;
            outline->links.len = (size_t)(rest.ptr - outline->links.ptr);
        } else if (field.number == NODE_DATA && !outline->has_data) {
            outline->has_data = true;
            outline->data = field.bytes;
            links_closed = outline->link_count > 0;
        } else {
            return FGW_ERR_CORRUPT;
        }
    }
    return FGW_OK;
}

static enum fgw_err decode_hash(struct fgw_bytes bytes, struct fgw_cid_view *out_cid)
{
    struct fgw_cid_view cid;
    if (fgw_cid_decode(bytes, &cid) != FGW_OK || cid.encoded.len != bytes.len) {
        return FGW_ERR_CORRUPT;
    }
    *out_cid = cid;
    return FGW_OK;
}

static enum fgw_err decode_link(struct fgw_bytes bytes, struct fgw_unixfs_link *link)
{
    struct fgw_bytes rest = bytes;
    uint64_t last = 0;
    *link = (struct fgw_unixfs_link){0};
    while (rest.len > 0) {
        struct fgw_protobuf_field field;
        enum fgw_err err = fgw_protobuf_take(&rest, &field);
        if (err != FGW_OK || field.number <= last) {
            return FGW_ERR_CORRUPT;
        }
        bool first = last == 0;
        last = field.number;
        if (field.number == LINK_HASH && field.wire == FGW_PROTOBUF_BYTES) {
            err = decode_hash(field.bytes, &link->cid);
        } else if (field.number == LINK_NAME && field.wire == FGW_PROTOBUF_BYTES && !first) {
            link->name = field.bytes;
        } else if (field.number == LINK_TSIZE && field.wire == FGW_PROTOBUF_VARINT && !first) {
            link->tree_bytes = field.value;
        } else {
            err = FGW_ERR_CORRUPT;
        }
        if (err != FGW_OK) {
            return err;
        }
    }
    return last == 0 ? FGW_ERR_CORRUPT : FGW_OK; /* a link without a hash */
}

static enum fgw_err decode_links(struct fgw_bytes links, struct fgw_unixfs_link *out)
{
    struct fgw_protobuf_field field;
    for (size_t i = 0; links.len > 0; i++) {
        enum fgw_err err = fgw_protobuf_take(&links, &field);
        if (err == FGW_OK) {
            err = decode_link(field.bytes, &out[i]);
        }
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

/* Gives the next children their block sizes. */
static enum fgw_err take_block_sizes(const struct fgw_protobuf_field *field,
                                     struct fgw_unixfs_link *links, size_t link_count,
                                     size_t *next_link)
{
    struct fgw_bytes packed = field->bytes;
    uint64_t size = field->value;
    bool single = field->wire == FGW_PROTOBUF_VARINT;
    if (!single && field->wire != FGW_PROTOBUF_BYTES) {
        return FGW_ERR_CORRUPT;
    }
    while (single || packed.len > 0) {
        if (*next_link >= link_count ||
            (!single && fgw_protobuf_take_varint(&packed, &size) != FGW_OK)) {
            return FGW_ERR_CORRUPT;
        }
        links[(*next_link)++].file_bytes = size;
        single = false;
    }
    return FGW_OK;
}

struct unixfs_fields {
    bool names_allowed;
    bool has_type;
    bool has_file_size;
    size_t sized_links;
};

static enum fgw_err take_unixfs_field(const struct fgw_protobuf_field *field,
                                      struct fgw_unixfs_node *node, struct fgw_unixfs_link *links,
                                      struct unixfs_fields *seen)
{
    bool varint = field->wire == FGW_PROTOBUF_VARINT;
    switch (field->number) {
    case DATA_TYPE:
        if (!varint || field->value > FGW_UNIXFS_HAMT_SHARD) {
            return FGW_ERR_CORRUPT;
        }
        seen->has_type = true;
        node->type = (enum fgw_unixfs_type)field->value;
        return FGW_OK;
    case DATA_DATA:
        node->data = field->bytes;
        return field->wire == FGW_PROTOBUF_BYTES ? FGW_OK : FGW_ERR_CORRUPT;
    case DATA_FILE_SIZE:
        seen->has_file_size = true;
        node->file_bytes = field->value;
        return varint ? FGW_OK : FGW_ERR_CORRUPT;
    case DATA_BLOCK_SIZES:
        return take_block_sizes(field, links, node->link_count, &seen->sized_links);
    default:
        return FGW_OK; /* hashType, fanout, mode, mtime and what may come */
    }
}

/* filesize = inline data + block sizes, one for each link; no link named unless names are allowed. */
static enum fgw_err check_file(struct fgw_unixfs_node *node, const struct unixfs_fields *seen)
{
    uint64_t sum = node->data.len;
    for (size_t i = 0; i < node->link_count; i++) {
        bool named = node->links[i].name.len > 0 && !seen->names_allowed;
        if (named || node->links[i].file_bytes > INT64_MAX - sum) {
            return FGW_ERR_CORRUPT;
        }
        sum += node->links[i].file_bytes;
    }
    if (seen->sized_links != node->link_count || (seen->has_file_size && node->file_bytes != sum)) {
        return FGW_ERR_CORRUPT;
    }
    node->file_bytes = sum;
    return FGW_OK;
}

static enum fgw_err check_directory(const struct fgw_unixfs_node *node)
{
    for (size_t i = 1; i < node->link_count; i++) {
        if (fgw_bytes_cmp(node->links[i - 1].name, node->links[i].name) > 0) {
            return FGW_ERR_CORRUPT;
        }
    }
    return FGW_OK;
}

static enum fgw_err decode_unixfs(struct fgw_bytes data, bool names_allowed,
                                  struct fgw_unixfs_node *node, struct fgw_unixfs_link *links)
{
    struct unixfs_fields seen = {.names_allowed = names_allowed};
    while (data.len > 0) {
        struct fgw_protobuf_field field;
        enum fgw_err err = fgw_protobuf_take(&data, &field);
        if (err == FGW_OK) {
            err = take_unixfs_field(&field, node, links, &seen);
        }
        if (err != FGW_OK) {
            return err;
        }
    }
    if (!seen.has_type) {
        return FGW_ERR_CORRUPT;
    }
    switch (node->type) {
    case FGW_UNIXFS_FILE:
    case FGW_UNIXFS_RAW:
        return check_file(node, &seen);
    case FGW_UNIXFS_DIRECTORY:
    case FGW_UNIXFS_HAMT_SHARD:
        return check_directory(node);
    default:
        return FGW_OK;
    }
}

static enum fgw_err decode(struct fgw_arena *arena, struct fgw_bytes block, bool names_allowed,
                           struct fgw_unixfs_node *out_node)
{
    if (block.len > FGW_UNIXFS_NODE_MAX) {
        return FGW_ERR_TOO_LARGE;
    }
    struct outline outline = {0};
    enum fgw_err err = outline_node(block, &outline);
    if (err != FGW_OK) {
        return err;
    }
    if (!outline.has_data) {
        return FGW_ERR_CORRUPT;
    }
    struct fgw_unixfs_link *links =
        fgw_arena_alloc(arena, (outline.link_count + 1) * sizeof *links);
    err = decode_links(outline.links, links);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_unixfs_node node = {.links = links, .link_count = outline.link_count};
    err = decode_unixfs(outline.data, names_allowed, &node, links);
    if (err == FGW_OK) {
        *out_node = node;
    }
    return err;
}

enum fgw_err fgw_unixfs_decode(struct fgw_arena *arena, struct fgw_bytes block,
                               struct fgw_unixfs_node *out_node)
{
    return decode(arena, block, false, out_node);
}

enum fgw_err fgw_unixfs_decode_named(struct fgw_arena *arena, struct fgw_bytes block,
                                     struct fgw_unixfs_node *out_node)
{
    return decode(arena, block, true, out_node);
}
