/* fuzz_cql_frame.c: arbitrary bytes through the frame assembler (cut as the first byte says) and
 * the response decoder; rows are read to the end and errors classified. */
#include "base/bytes.h"
#include "cql/classify.h"
#include "cql/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_rows(struct fgw_cql_response *response)
{
    struct fgw_cql_result *result = fgw_cql_result_new(response);
    bool applied;
    (void)!fgw_cql_result_applied(result, &applied);
    fgw_cql_result_rewind(result);
    while (fgw_cql_result_next(result)) {
        struct fgw_bytes view;
        int64_t wide;
        (void)!fgw_cql_get_text(result, "v", &view);
        (void)!fgw_cql_get_blob(result, "k", &view);
        (void)!fgw_cql_get_bigint(result, "n", &wide);
        (void)fgw_cql_get_null(result, "x");
    }
    fgw_cql_result_free(result);
}

static void decode(struct fgw_cql_frame *frame)
{
    struct fgw_cql_response *response;
    struct fgw_error error = {0};
    if (fgw_cql_decode(frame, &response, &error) != FGW_OK) {
        return;
    }
    if (response->opcode == FGW_CQL_OP_RESULT) {
        read_rows(response);
        return;
    }
    if (response->opcode == FGW_CQL_OP_ERROR) {
        (void)fgw_cql_classify(&response->error, FGW_CQL_LWT, FGW_LIT("id"));
    }
    fgw_cql_response_free(response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    size_t step = data[0] == 0 ? size : data[0];
    struct fgw_cql_assembler assembler = {0};
    enum fgw_err err = FGW_ERR_END;
    for (size_t at = 1; at < size; at += step) {
        struct fgw_bytes input = fgw_bytes_sub(fgw_bytes(data, size), at, step);
        do {
            struct fgw_cql_frame frame = {0};
            struct fgw_error error = {0};
            err = fgw_cql_assembler_feed(&assembler, &input, &frame, &error);
            if (err == FGW_OK) {
                decode(&frame);
            }
        } while (err == FGW_OK);
        if (err != FGW_ERR_END) {
            break;
        }
    }
    fgw_cql_assembler_deinit(&assembler);
    return 0;
}
