/* xml_write.h: writes S3's XML documents into a buffer: escaping, elements, URL encoding of keys.
 * Errors collect in the buffer (fgw_buf_status). Pure functions. */
#ifndef FGW_S3_XML_WRITE_H
#define FGW_S3_XML_WRITE_H

#include "base/bytes.h"

#define FGW_XML_NAMESPACE "http://s3.amazonaws.com/doc/2006-03-01/"

/* The XML declaration. */
void fgw_xml_begin(struct fgw_buf *out);
/* Opens the root element with S3's namespace. */
void fgw_xml_root(struct fgw_buf *out, const char *name);
void fgw_xml_open(struct fgw_buf *out, const char *name);
void fgw_xml_close(struct fgw_buf *out, const char *name);
/* <name>text</name>, escaped: & < > and, inside text, control bytes as references (also those that
 * XML 1.0 forbids, as AWS does; public bug reports V12). Quotes stay (B35). */
void fgw_xml_text(struct fgw_buf *out, const char *name, struct fgw_bytes text);
void fgw_xml_number(struct fgw_buf *out, const char *name, uint64_t value);
void fgw_xml_bool(struct fgw_buf *out, const char *name, bool value);
/* Milliseconds since 1970 as 2026-11-30T17:00:00.123Z. */
void fgw_xml_time(struct fgw_buf *out, const char *name, int64_t wall_ms);
/* "etag" in quotes. */
void fgw_xml_etag(struct fgw_buf *out, const char *name, struct fgw_bytes etag);
/* encoding-type=url: percent-encoded with '/' kept, when url is set; else as fgw_xml_text. */
void fgw_xml_key(struct fgw_buf *out, const char *name, struct fgw_bytes key, bool url);
/* Only the escaped text. */
void fgw_xml_escape(struct fgw_buf *out, struct fgw_bytes text);

#endif
