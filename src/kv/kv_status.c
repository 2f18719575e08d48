/* kv_status.c: from RocksDB's status texts to enum fgw_err. The C API hands over nothing but the
 * text, "<kind>: <message>"; the kinds are those of Status::ToString (util/status.cc). */
#include "base/check.h"
#include "kv/kv_internal.h"

static enum fgw_err status_code(struct fgw_bytes text)
{
    static const struct {
        const char *part;
        bool at_start;
        enum fgw_err err;
    } RULES[] = {
        /* first what may stand inside an "IO error" or a wrapping kind */
        {"No space left on device", false, FGW_ERR_NOSPACE},
        {"Disk quota exceeded", false, FGW_ERR_NOSPACE},
        {"Space limit reached", false, FGW_ERR_NOSPACE},
        {"While lock file", false, FGW_ERR_IN_USE},
        {"lock hold by current process", false, FGW_ERR_IN_USE},
        {"does not exist (create_if_missing is false)", false, FGW_ERR_NOT_FOUND},
        {"created with newer version of RocksDB", false, FGW_ERR_NEWER_VERSION},
        {"Corruption: ", true, FGW_ERR_CORRUPT},
        {"Result incomplete: ", true, FGW_ERR_AGAIN},
        {"NotFound: ", true, FGW_ERR_NOT_FOUND},
        {"Not implemented: ", true, FGW_ERR_NEWER_VERSION},
        {"Operation timed out: ", true, FGW_ERR_TIMEOUT},
        {"IO error: ", true, FGW_ERR_IO},
    };
    for (size_t i = 0; i < FGW_COUNT_OF(RULES); i++) {
        size_t at = fgw_bytes_find(text, fgw_bytes_str(RULES[i].part), 0);
        if (RULES[i].at_start ? at == 0 : at != SIZE_MAX) {
            return RULES[i].err;
        }
    }
    return FGW_ERR_IO;
}

enum fgw_err fgw_kv_take_status(char *status, struct fgw_error *error)
{
    if (status == NULL) {
        return FGW_OK;
    }
    enum fgw_err err = status_code(fgw_bytes_str(status));
    (void)fgw_error_set(error, err, "RocksDB: %s", status);
    rocksdb_free(status);
    return err;
}

static enum fgw_err read_only(struct fgw_kv *kv, struct fgw_error *error)
{
    (void)pthread_mutex_lock(&kv->failure.mutex);
    (void)fgw_error_set(error, FGW_ERR_READ_ONLY,
                        "The index is read-only after a failed write (%s); restart.",
                        kv->failure.reason);
    (void)pthread_mutex_unlock(&kv->failure.mutex);
    return FGW_ERR_READ_ONLY;
}

enum fgw_err fgw_kv_take_write_status(struct fgw_kv *kv, char *status, struct fgw_error *error)
{
    if (status == NULL) {
        return FGW_OK;
    }
    struct fgw_error first;
    fgw_error_init(&first);
    enum fgw_err err = fgw_kv_take_status(status, &first);
    (void)pthread_mutex_lock(&kv->failure.mutex);
    bool was_failed = atomic_load(&kv->failed);
    if (!was_failed) {
        struct fgw_bytes text =
            fgw_bytes_sub(fgw_bytes_str(first.message), 0, sizeof kv->failure.reason - 1);
        memcpy(kv->failure.reason, text.ptr, text.len);
        kv->failure.reason[text.len] = '\0';
        atomic_store(&kv->failed, true);
    }
    (void)pthread_mutex_unlock(&kv->failure.mutex);
    if (was_failed) {
        return read_only(kv, error);
    }
    return fgw_error_set(error, err, "%s", first.message);
}

enum fgw_err fgw_kv_writable(struct fgw_kv *kv, struct fgw_error *error)
{
    return atomic_load(&kv->failed) ? read_only(kv, error) : FGW_OK;
}
