/* fixtures.h: response bytes for the tests of src/cql, written as hex with blanks. */
#ifndef FGW_TESTS_CQL_FIXTURES_H
#define FGW_TESTS_CQL_FIXTURES_H

#include "cmocka_all.h"

#include "base/encode.h"
#include "cql/codec.h"

/* Appends the bytes that a hex text with blanks stands for. */
static inline void put_hex(struct fgw_buf *out, const char *hex)
{
    for (; *hex != '\0'; hex++) {
        if (*hex != ' ') {
            uint8_t byte;
            assert_int_equal(fgw_hex_decode(fgw_bytes(hex, 2), &byte), FGW_OK);
            fgw_buf_append_byte(out, byte);
            hex++;
        }
    }
}

static inline void put_text(struct fgw_buf *out, const char *text)
{
    uint8_t len[2];
    fgw_put_u16be(len, (uint16_t)strlen(text));
    fgw_buf_append(out, fgw_bytes(len, 2));
    fgw_buf_append_str(out, text);
}

/* A frame whose body is a heap copy of exactly body's size, so that a read past it is caught. */
static inline struct fgw_cql_frame make_frame(uint8_t opcode, uint8_t flags, struct fgw_bytes body)
{
    struct fgw_cql_frame frame = {.opcode = opcode, .flags = flags, .stream = 7};
    if (body.len > 0) {
        frame.body = fgw_xmalloc(body.len);
        memcpy(frame.body, body.ptr, body.len);
        frame.body_len = body.len;
    }
    return frame;
}

static inline enum fgw_err decode_bytes(uint8_t opcode, uint8_t flags, struct fgw_bytes body,
                                        struct fgw_cql_response **out)
{
    struct fgw_cql_frame frame = make_frame(opcode, flags, body);
    struct fgw_error error = {0};
    enum fgw_err err = fgw_cql_decode(&frame, out, &error);
    assert_null(frame.body);
    assert_true(err == FGW_OK || error.message[0] != '\0');
    return err;
}

static inline struct fgw_cql_response *decode_ok(uint8_t opcode, uint8_t flags,
                                                 const struct fgw_buf *body)
{
    struct fgw_cql_response *response = NULL;
    assert_int_equal(decode_bytes(opcode, flags, fgw_buf_bytes(body), &response), FGW_OK);
    assert_int_equal(response->stream, 7);
    return response;
}

#define assert_bytes(view, literal) \
    do { \
        struct fgw_bytes view_ = (view); \
        assert_int_equal(view_.len, sizeof(literal) - 1); \
        assert_memory_equal(view_.ptr, literal, sizeof(literal) - 1); \
    } while (0)

#endif
