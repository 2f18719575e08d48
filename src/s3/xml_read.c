/* xml_read.c: see xml_read.h. */
#include "s3/xml_read.h"

#include <expat.h>

#include "base/check.h"

enum { MAX_DEPTH = 16, MAX_TEXT = 64 * 1024, MAX_INPUT = 64 * 1024 * 1024 };

struct open_element {
    struct fgw_xml_node *node;
    struct fgw_xml_node *last_child;
};

struct reader {
    struct fgw_arena *arena;
    XML_Parser parser;
    struct open_element stack[MAX_DEPTH];
    unsigned depth;
    struct fgw_xml_node *root;
    size_t elements_left;
    struct fgw_buf text; /* of the innermost open element, when it has no children */
    bool refused;
};

static void refuse(struct reader *reader)
{
    reader->refused = true;
    (void)XML_StopParser(reader->parser, XML_FALSE);
}

static struct fgw_bytes local_name(const char *name)
{
    const char *colon = strrchr(name, ':');
    return fgw_bytes_str(colon == NULL ? name : colon + 1);
}

static void on_start(void *data, const XML_Char *name, const XML_Char **attributes)
{
    (void)attributes;
    struct reader *reader = data;
    if (reader->depth >= MAX_DEPTH || reader->elements_left == 0) {
        refuse(reader);
        return;
    }
    reader->elements_left--;
    struct fgw_xml_node *node = fgw_arena_zalloc(reader->arena, sizeof *node);
    node->name = fgw_arena_copy(reader->arena, local_name(name));
    if (reader->depth == 0) {
        reader->root = node;
    } else {
        struct open_element *parent = &reader->stack[reader->depth - 1];
        if (parent->last_child == NULL) {
            parent->node->first_child = node;
        } else {
            parent->last_child->next = node;
        }
        parent->last_child = node;
    }
    reader->stack[reader->depth++] = (struct open_element){node, NULL};
    fgw_buf_clear(&reader->text);
}

static void on_end(void *data, const XML_Char *name)
{
    (void)name;
    struct reader *reader = data;
    struct open_element *element = &reader->stack[--reader->depth];
    if (element->last_child == NULL) {
        element->node->text = fgw_arena_copy(reader->arena, fgw_buf_bytes(&reader->text));
    }
    fgw_buf_clear(&reader->text);
}

static void on_text(void *data, const XML_Char *text, int len)
{
    struct reader *reader = data;
    if (fgw_buf_append(&reader->text, fgw_bytes(text, (size_t)len)) != FGW_OK) {
        refuse(reader);
    }
}

static void on_doctype(void *data, const XML_Char *name, const XML_Char *system_id,
                       const XML_Char *public_id, int has_subset)
{
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_subset;
    refuse(data);
}

static bool parse_all(struct reader *reader, struct fgw_bytes document)
{
    XML_SetUserData(reader->parser, reader);
    XML_SetElementHandler(reader->parser, on_start, on_end);
    XML_SetCharacterDataHandler(reader->parser, on_text);
    XML_SetStartDoctypeDeclHandler(reader->parser, on_doctype);
    return XML_Parse(reader->parser, (const char *)document.ptr, (int)document.len, XML_TRUE) ==
               XML_STATUS_OK &&
           !reader->refused;
}

enum fgw_err fgw_xml_parse(struct fgw_arena *arena, struct fgw_bytes document,
                           const char *root_name, size_t max_elements,
                           struct fgw_xml_node **out_root)
{
    if (document.len == 0 || document.len > MAX_INPUT) {
        return FGW_ERR_MALFORMED_XML;
    }
    struct reader *reader = fgw_arena_zalloc(arena, sizeof *reader);
    reader->arena = arena;
    reader->elements_left = max_elements;
    fgw_buf_init(&reader->text, MAX_TEXT);
    reader->parser = XML_ParserCreate(NULL);
    FGW_CHECK(reader->parser != NULL);
    bool good = parse_all(reader, document);
    XML_ParserFree(reader->parser);
    fgw_buf_deinit(&reader->text);
    if (!good || !fgw_xml_is(reader->root, root_name)) {
        return FGW_ERR_MALFORMED_XML;
    }
    *out_root = reader->root;
    return FGW_OK;
}

bool fgw_xml_is(const struct fgw_xml_node *node, const char *name)
{
    return fgw_bytes_eq_str(node->name, name);
}

const struct fgw_xml_node *fgw_xml_child(const struct fgw_xml_node *node, const char *name)
{
    const struct fgw_xml_node *child = node == NULL ? NULL : node->first_child;
    while (child != NULL && !fgw_xml_is(child, name)) {
        child = child->next;
    }
    return child;
}

struct fgw_bytes fgw_xml_child_text(const struct fgw_xml_node *node, const char *name)
{
    const struct fgw_xml_node *child = fgw_xml_child(node, name);
    return child == NULL ? (struct fgw_bytes){NULL, 0} : child->text;
}
