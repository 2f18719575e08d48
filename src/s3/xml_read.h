/* xml_read.h: bounded reader of the XML bodies clients send: a small tree in the arena.
 *
 * Any namespace and prefix is accepted, an XML declaration, BOM, comments and CDATA too; a document
 * type is refused, so there are no entities but the five of XML and numeric references. Depth,
 * elements and text are bounded. Source: XML 1.0; public bug reports B34, B89. */
#ifndef FGW_S3_XML_READ_H
#define FGW_S3_XML_READ_H

#include "base/arena.h"
#include "base/bytes.h"

struct fgw_xml_node {
    struct fgw_bytes name; /* without prefix */
    struct fgw_bytes text; /* of a leaf: all of it, blanks kept; of others: empty */
    struct fgw_xml_node *first_child;
    struct fgw_xml_node *next;
};

/* FGW_ERR_MALFORMED_XML for anything that is not one well-formed document inside the bounds whose
 * root element is called root_name. max_elements bounds memory to about 100 bytes each. */
enum fgw_err fgw_xml_parse(struct fgw_arena *arena, struct fgw_bytes document,
                           const char *root_name, size_t max_elements,
                           struct fgw_xml_node **out_root) FGW_MUST_CHECK;
/* First child of that name, or NULL. Takes NULL. */
const struct fgw_xml_node *fgw_xml_child(const struct fgw_xml_node *node, const char *name);
/* Text of that child; ptr NULL when there is no such child. */
struct fgw_bytes fgw_xml_child_text(const struct fgw_xml_node *node, const char *name);
bool fgw_xml_is(const struct fgw_xml_node *node, const char *name);

#endif
