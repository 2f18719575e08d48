/* decode.c: the response half of codec.h: prefixes, bodies by opcode, ERROR and EVENT. RESULT is
 * in decode_result.c. */
#include "cql/codec.h"

#include "cql/decode_internal.h"

enum { ARENA_BLOCK = 1024, WARNINGS_KEPT = 16, UUID_SIZE = 16, SUPPORTED_MAX = 4096 };

/* Tracing id, warnings, custom payload: in this order, each when flagged. */
static void decode_prefix(struct fgw_cql_reader *reader, uint8_t flags,
                          struct fgw_cql_response *response)
{
    if (flags & FGW_CQL_FLAG_TRACING) {
        (void)fgw_cql_read_raw(reader, UUID_SIZE);
    }
    if (flags & FGW_CQL_FLAG_WARNING) {
        uint16_t count = fgw_cql_read_u16(reader);
        response->warnings =
            fgw_arena_alloc(&response->arena, WARNINGS_KEPT * sizeof *response->warnings);
        for (uint16_t i = 0; i < count && !reader->bad; i++) {
            struct fgw_bytes warning = fgw_cql_read_string(reader);
            if (response->warning_count < WARNINGS_KEPT) {
                response->warnings[response->warning_count++] = warning;
            }
        }
    }
    if (flags & FGW_CQL_FLAG_PAYLOAD) {
        uint16_t count = fgw_cql_read_u16(reader);
        for (uint16_t i = 0; i < count && !reader->bad; i++) {
            (void)fgw_cql_read_string(reader);
            (void)fgw_cql_read_bytes(reader, NULL);
        }
    }
}

static enum fgw_cql_write_type write_type(struct fgw_bytes name)
{
    static const struct {
        const char *name;
        enum fgw_cql_write_type type;
    } TYPES[] = {
        {"SIMPLE", FGW_CQL_WRITE_SIMPLE},       {"BATCH", FGW_CQL_WRITE_BATCH},
        {"COUNTER", FGW_CQL_WRITE_COUNTER},     {"UNLOGGED_BATCH", FGW_CQL_WRITE_UNLOGGED_BATCH},
        {"BATCH_LOG", FGW_CQL_WRITE_BATCH_LOG}, {"CAS", FGW_CQL_WRITE_CAS},
        {"VIEW", FGW_CQL_WRITE_VIEW},           {"CDC", FGW_CQL_WRITE_CDC},
    };
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (fgw_bytes_eq_str(name, TYPES[i].name)) {
            return TYPES[i].type;
        }
    }
    return FGW_CQL_WRITE_UNKNOWN;
}

/* "... (ql error -301)" at the very end; an earlier one belongs to a quoted statement. */
static int32_t find_ql_code(struct fgw_bytes message)
{
    enum { DIGITS_MAX = 6 };
    while (message.len > 0 && strchr(" .\n", message.ptr[message.len - 1]) != NULL) {
        message.len--;
    }
    if (!fgw_bytes_ends_with(message, FGW_LIT(")"))) {
        return 0;
    }
    message.len--;
    size_t digits = 0;
    while (digits < message.len && digits < DIGITS_MAX &&
           message.ptr[message.len - 1 - digits] >= '0' &&
           message.ptr[message.len - 1 - digits] <= '9') {
        digits++;
    }
    uint64_t number = 0;
    struct fgw_bytes text = fgw_bytes_sub(message, message.len - digits, SIZE_MAX);
    message.len -= digits;
    if (!fgw_bytes_ends_with(message, FGW_LIT("(ql error -")) ||
        fgw_bytes_to_u64(text, &number) != FGW_OK) {
        return 0;
    }
    return -(int32_t)number;
}

/* Bodies: spec section 5.5. */
static void decode_error(struct fgw_cql_reader *reader, struct fgw_cql_server_error *error)
{
    error->code = fgw_cql_read_i32(reader);
    error->message = fgw_cql_read_string(reader);
    error->ql_code = find_ql_code(error->message);
    switch (error->code) {
    case FGW_CQL_ERROR_UNAVAILABLE:
        error->consistency = fgw_cql_read_u16(reader);
        error->required = fgw_cql_read_i32(reader);
        error->received = fgw_cql_read_i32(reader);
        return;
    case FGW_CQL_ERROR_WRITE_TIMEOUT:
    case FGW_CQL_ERROR_READ_TIMEOUT:
    case FGW_CQL_ERROR_READ_FAILURE:
    case FGW_CQL_ERROR_WRITE_FAILURE:
        error->consistency = fgw_cql_read_u16(reader);
        error->received = fgw_cql_read_i32(reader);
        error->required = fgw_cql_read_i32(reader);
        if (error->code == FGW_CQL_ERROR_READ_FAILURE ||
            error->code == FGW_CQL_ERROR_WRITE_FAILURE) {
            error->failures = fgw_cql_read_i32(reader);
        }
        if (error->code == FGW_CQL_ERROR_READ_FAILURE ||
            error->code == FGW_CQL_ERROR_READ_TIMEOUT) {
            error->data_present = fgw_cql_read_u8(reader) != 0;
        } else {
            error->write_type = write_type(fgw_cql_read_string(reader));
        }
        return;
    case FGW_CQL_ERROR_FUNCTION_FAILURE:
    case FGW_CQL_ERROR_ALREADY_EXISTS:
        error->keyspace = fgw_cql_read_string(reader);
        error->name = fgw_cql_read_string(reader);
        return;
    case FGW_CQL_ERROR_UNPREPARED:
        error->statement_id = fgw_cql_read_string(reader);
        return;
    default:
        return;
    }
}

static void decode_event(struct fgw_cql_reader *reader, struct fgw_cql_change *change)
{
    struct fgw_bytes type = fgw_cql_read_string(reader);
    if (fgw_bytes_eq(type, FGW_LIT("SCHEMA_CHANGE"))) {
        fgw_cql_decode_schema_change(reader, change);
        return;
    }
    change->kind = fgw_cql_read_string(reader);
    change->keyspace = fgw_cql_read_inet_address(reader);
    (void)fgw_cql_read_i32(reader);
}

/* One item per pair, counted first: a key may have any number of values. */
static void decode_supported(struct fgw_cql_reader *reader, struct fgw_cql_response *response)
{
    struct fgw_cql_reader counting = *reader;
    size_t total = 0;
    uint16_t keys = fgw_cql_read_u16(&counting);
    for (uint16_t key = 0; key < keys && !counting.bad; key++) {
        (void)fgw_cql_read_string(&counting);
        uint16_t values = fgw_cql_read_u16(&counting);
        for (uint16_t i = 0; i < values && !counting.bad; i++) {
            (void)fgw_cql_read_string(&counting);
            total++;
        }
    }
    if (counting.bad || total > SUPPORTED_MAX) {
        reader->bad = true;
        return;
    }
    struct fgw_cql_option *items = fgw_arena_alloc(&response->arena, (total + 1) * sizeof *items);
    size_t count = 0;
    keys = fgw_cql_read_u16(reader);
    for (uint16_t key = 0; key < keys; key++) {
        struct fgw_bytes name = fgw_cql_read_string(reader);
        uint16_t values = fgw_cql_read_u16(reader);
        for (uint16_t i = 0; i < values; i++) {
            items[count++] = (struct fgw_cql_option){name, fgw_cql_read_string(reader)};
        }
    }
    response->supported.items = items;
    response->supported.count = count;
}

static enum fgw_err decode_body(struct fgw_cql_reader *reader, struct fgw_cql_response *response,
                                struct fgw_error *error)
{
    switch (response->opcode) {
    case FGW_CQL_OP_ERROR:
        decode_error(reader, &response->error);
        return FGW_OK;
    case FGW_CQL_OP_READY:
        return FGW_OK;
    case FGW_CQL_OP_AUTHENTICATE:
        response->text = fgw_cql_read_string(reader);
        return FGW_OK;
    case FGW_CQL_OP_AUTH_CHALLENGE:
    case FGW_CQL_OP_AUTH_SUCCESS:
        response->text = fgw_cql_read_bytes(reader, NULL);
        return FGW_OK;
    case FGW_CQL_OP_SUPPORTED:
        decode_supported(reader, response);
        return FGW_OK;
    case FGW_CQL_OP_RESULT:
        return fgw_cql_decode_result(reader, response, error);
    case FGW_CQL_OP_EVENT:
        decode_event(reader, &response->change);
        return FGW_OK;
    default:
        return fgw_error_set(error, FGW_ERR_CORRUPT, "a response with unknown opcode 0x%02x",
                             response->opcode);
    }
}

enum fgw_err fgw_cql_decode(struct fgw_cql_frame *frame, struct fgw_cql_response **out_response,
                            struct fgw_error *error)
{
    struct fgw_cql_response *response = fgw_xcalloc(1, sizeof *response);
    fgw_arena_init(&response->arena, ARENA_BLOCK);
    response->opcode = frame->opcode;
    response->stream = frame->stream;
    response->body = frame->body;
    struct fgw_cql_reader reader = fgw_cql_reader(fgw_bytes(frame->body, frame->body_len));
    uint8_t flags = frame->flags;
    *frame = (struct fgw_cql_frame){0};

    enum fgw_err err = FGW_OK;
    if (flags & FGW_CQL_FLAG_COMPRESSED) {
        err = fgw_error_set(error, FGW_ERR_CORRUPT, "a compressed response was never agreed on");
    } else {
        decode_prefix(&reader, flags, response);
        err = decode_body(&reader, response, error);
    }
    if (err == FGW_OK && reader.bad) {
        err = fgw_error_set(error, FGW_ERR_CORRUPT,
                            "the body of a response (opcode 0x%02x) does not fit its lengths",
                            response->opcode);
    }
    if (err != FGW_OK) {
        fgw_cql_response_free(response);
        return err;
    }
    *out_response = response;
    return FGW_OK;
}

void fgw_cql_response_free(struct fgw_cql_response *response)
{
    if (response == NULL) {
        return;
    }
    fgw_arena_deinit(&response->arena);
    fgw_xfree(response->body);
    fgw_xfree(response);
}

bool fgw_cql_response_supports(const struct fgw_cql_response *response, const char *key,
                               const char *value)
{
    if (response->opcode != FGW_CQL_OP_SUPPORTED) {
        return false;
    }
    for (size_t i = 0; i < response->supported.count; i++) {
        if (fgw_bytes_eq_str(response->supported.items[i].key, key) &&
            fgw_bytes_eq_str(response->supported.items[i].value, value)) {
            return true;
        }
    }
    return false;
}
