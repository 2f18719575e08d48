/* frame.h: frames of the CQL native protocol v4: the 9-byte header, its bounds, and the assembler
 * that makes response frames out of bytes as they arrive.
 *
 * Contract: no I/O, any cut of the input gives the same frames. A body is allocated as its bytes
 * arrive, never by what its header claims; a header that claims more than FGW_CQL_FRAME_MAX is
 * refused. The first bytes of something that is no CQL server are refused with a text that names
 * what it looks like (spec/ycql.md section 5.1, issue "a wrong port is named").
 * Ownership: a finished frame owns its body (fgw_cql_frame_deinit). One thread.
 */
#ifndef FGW_CQL_FRAME_H
#define FGW_CQL_FRAME_H

#include "base/bytes.h"
#include "cql/protocol.h"

enum { FGW_CQL_HEADER_SIZE = 9, FGW_CQL_FRAME_MAX = 64 << 20 };

struct fgw_cql_frame {
    uint8_t flags;
    uint8_t opcode;
    int16_t stream;
    uint8_t *body; /* heap; NULL when body_len is 0 */
    size_t body_len;
};

/* Takes a zeroed frame. */
void fgw_cql_frame_deinit(struct fgw_cql_frame *frame);

/* Writes the header of a request. body_len <= FGW_CQL_FRAME_MAX. */
void fgw_cql_header_write(uint8_t out[FGW_CQL_HEADER_SIZE], int16_t stream, uint8_t opcode,
                          size_t body_len);

/* What the first bytes of a peer that does not speak CQL look like ("an HTTP server"), or NULL
 * when they could be the start of a CQL response. */
const char *fgw_cql_foreign_peer(struct fgw_bytes first);

struct fgw_cql_assembler {
    uint8_t header[FGW_CQL_HEADER_SIZE];
    size_t header_len;
    struct fgw_cql_frame frame;
    size_t body_have;
    size_t body_cap;
};

/* Zero-initialise. */
void fgw_cql_assembler_deinit(struct fgw_cql_assembler *assembler);
/* Takes bytes off the front of *input. FGW_OK: *out_frame is a whole frame, there may be more
 * input left. FGW_ERR_END: all input was used, no frame yet. FGW_ERR_PARSE: not a CQL response,
 * or another protocol version; FGW_ERR_TOO_LARGE: the body would exceed FGW_CQL_FRAME_MAX; both
 * with a text in *error: close the connection. */
enum fgw_err fgw_cql_assembler_feed(struct fgw_cql_assembler *assembler, struct fgw_bytes *input,
                                    struct fgw_cql_frame *out_frame,
                                    struct fgw_error *error) FGW_MUST_CHECK;
/* The header bytes of a frame that has only begun; used to name a foreign peer that hung up. */
static inline struct fgw_bytes fgw_cql_assembler_pending(const struct fgw_cql_assembler *assembler)
{
    return fgw_bytes(assembler->header, assembler->header_len);
}

#endif
