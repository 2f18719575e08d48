/* frame.c: see frame.h. */
#include "cql/frame.h"

enum { BODY_FIRST_ALLOCATION = 4096 };

void fgw_cql_frame_deinit(struct fgw_cql_frame *frame)
{
    fgw_xfree(frame->body);
    *frame = (struct fgw_cql_frame){0};
}

void fgw_cql_header_write(uint8_t out[FGW_CQL_HEADER_SIZE], int16_t stream, uint8_t opcode,
                          size_t body_len)
{
    out[0] = FGW_CQL_VERSION;
    out[1] = 0;
    fgw_put_u16be(out + 2, (uint16_t)stream);
    out[4] = opcode;
    fgw_put_u32be(out + 5, (uint32_t)body_len);
}

const char *fgw_cql_foreign_peer(struct fgw_bytes first)
{
    if (first.len == 0 || (first.ptr[0] & FGW_CQL_RESPONSE_BIT) != 0) {
        return NULL;
    }
    if (fgw_bytes_starts_with(first, FGW_LIT("HTTP")) ||
        fgw_bytes_starts_with(first, FGW_LIT("<!DOC")) ||
        fgw_bytes_starts_with(first, FGW_LIT("<html"))) {
        return "an HTTP server (15433 is YugabyteDB's web UI; YCQL listens on 9042)";
    }
    if (first.len >= 2 && (first.ptr[0] == 0x15 || first.ptr[0] == 0x16) && first.ptr[1] == 0x03) {
        return "a server that expects TLS (set FGW_CQL_TLS_CA)";
    }
    if (fgw_bytes_starts_with(first, FGW_LIT("SSH-"))) {
        return "an SSH server";
    }
    if (first.ptr[0] == 'E' || first.ptr[0] == 'R' || first.ptr[0] == 'N') {
        return "a PostgreSQL server (5433 is YugabyteDB's YSQL; YCQL listens on 9042)";
    }
    return "no CQL server";
}

void fgw_cql_assembler_deinit(struct fgw_cql_assembler *assembler)
{
    fgw_cql_frame_deinit(&assembler->frame);
    *assembler = (struct fgw_cql_assembler){0};
}

static enum fgw_err parse_header(struct fgw_cql_assembler *assembler, struct fgw_error *error)
{
    const uint8_t *header = assembler->header;
    const char *foreign = fgw_cql_foreign_peer(fgw_bytes(header, FGW_CQL_HEADER_SIZE));
    if (foreign != NULL) {
        return fgw_error_set(error, FGW_ERR_PARSE, "the peer looks like %s", foreign);
    }
    unsigned version = header[0] & 0x7fU;
    if (version != FGW_CQL_VERSION) {
        return fgw_error_set(
            error, FGW_ERR_PARSE,
            "the server answers with CQL protocol version %u; version %d is needed "
            "(YugabyteDB YCQL, Apache Cassandra 3 to 5, ScyllaDB)",
            version, FGW_CQL_VERSION);
    }
    uint32_t body_len = fgw_get_u32be(header + 5);
    if (body_len > FGW_CQL_FRAME_MAX) {
        return fgw_error_set(error, FGW_ERR_TOO_LARGE,
                             "a response of %u bytes is refused (limit %d)", body_len,
                             FGW_CQL_FRAME_MAX);
    }
    assembler->frame = (struct fgw_cql_frame){.flags = header[1],
                                              .opcode = header[4],
                                              .stream = (int16_t)fgw_get_u16be(header + 2),
                                              .body_len = body_len};
    assembler->body_have = 0;
    assembler->body_cap = 0;
    return FGW_OK;
}

static struct fgw_bytes take(struct fgw_bytes *input, size_t want)
{
    struct fgw_bytes taken = fgw_bytes_sub(*input, 0, want);
    *input = fgw_bytes_sub(*input, taken.len, SIZE_MAX);
    return taken;
}

/* Grows by doubling as bytes arrive, so that memory follows what was sent and not what was
 * claimed. */
static void append_body(struct fgw_cql_assembler *assembler, struct fgw_bytes part)
{
    struct fgw_cql_frame *frame = &assembler->frame;
    size_t need = assembler->body_have + part.len;
    if (need > assembler->body_cap) {
        size_t cap = assembler->body_cap * 2;
        cap = cap < BODY_FIRST_ALLOCATION ? BODY_FIRST_ALLOCATION : cap;
        cap = cap < need ? need : cap;
        cap = cap > frame->body_len ? frame->body_len : cap;
        frame->body = fgw_xrealloc(frame->body, cap);
        assembler->body_cap = cap;
    }
    memcpy(frame->body + assembler->body_have, part.ptr, part.len);
    assembler->body_have = need;
}

enum fgw_err fgw_cql_assembler_feed(struct fgw_cql_assembler *assembler, struct fgw_bytes *input,
                                    struct fgw_cql_frame *out_frame, struct fgw_error *error)
{
    if (assembler->header_len < FGW_CQL_HEADER_SIZE) {
        struct fgw_bytes part = take(input, FGW_CQL_HEADER_SIZE - assembler->header_len);
        if (part.len > 0) {
            memcpy(assembler->header + assembler->header_len, part.ptr, part.len);
        }
        assembler->header_len += part.len;
        if (assembler->header_len < FGW_CQL_HEADER_SIZE) {
            return FGW_ERR_END;
        }
        enum fgw_err err = parse_header(assembler, error);
        if (err != FGW_OK) {
            return err;
        }
    }
    struct fgw_bytes part = take(input, assembler->frame.body_len - assembler->body_have);
    if (part.len > 0) {
        append_body(assembler, part);
    }
    if (assembler->body_have < assembler->frame.body_len) {
        return FGW_ERR_END;
    }
    *out_frame = assembler->frame;
    *assembler = (struct fgw_cql_assembler){0};
    return FGW_OK;
}
