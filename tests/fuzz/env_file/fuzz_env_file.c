/* fuzz_env_file.c: settings files: no crash, every line answered once, views inside the input. */
#include "base/check.h"
#include "config/config_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(const uint8_t *data, size_t size, struct fgw_bytes view)
{
    FGW_CHECK(view.len == 0 || (view.ptr >= data && view.ptr + view.len <= data + size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fgw_bytes rest = fgw_bytes(data, size);
    struct env_line item;
    const char *reason;
    unsigned line = 0;
    enum fgw_err err;
    while ((err = env_file_next(&rest, &line, &item, &reason)) != FGW_ERR_END) {
        FGW_CHECK(line <= size + 1);
        if (err == FGW_OK) {
            FGW_CHECK(item.key.len > 0 && item.line == line);
            check_inside(data, size, item.key);
            check_inside(data, size, item.value);
        } else {
            FGW_CHECK(err == FGW_ERR_PARSE && reason != NULL);
        }
    }
    return 0;
}
