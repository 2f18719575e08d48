/* credentials.c: see credentials.h. The file is two lines a shell can read:
 * FGW_ROOT_ACCESS_KEY=... and FGW_ROOT_SECRET_KEY=... */
#include "bin/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/fs.h"
#include "base/rng.h"

static void make_keys(struct fgw_credentials *out)
{
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    uint8_t secret[30];
    (void)snprintf(out->access_key, sizeof out->access_key, "FGW");
    for (size_t i = 3; i < 20; i++) {
        out->access_key[i] = LETTERS[fgw_rng_below(32)];
    }
    out->access_key[20] = '\0';
    fgw_rng_fill(secret, sizeof secret);
    fgw_base64url_encode(fgw_bytes(secret, sizeof secret), out->secret_key);
}

static bool take(struct fgw_bytes line, const char *name, char *out, size_t size)
{
    struct fgw_bytes prefix = fgw_bytes_str(name);
    if (!fgw_bytes_starts_with(line, prefix)) {
        return false;
    }
    struct fgw_bytes value = fgw_bytes_trim(fgw_bytes_sub(line, prefix.len, SIZE_MAX));
    if (value.len == 0 || value.len >= size) {
        return false;
    }
    memcpy(out, value.ptr, value.len);
    out[value.len] = '\0';
    return true;
}

static bool parse(struct fgw_bytes text, struct fgw_credentials *out)
{
    struct fgw_bytes line;
    bool access = false;
    bool secret = false;
    while (fgw_bytes_split(&text, '\n', &line)) {
        access = take(line, "FGW_ROOT_ACCESS_KEY=", out->access_key, sizeof out->access_key) || access;
        secret = take(line, "FGW_ROOT_SECRET_KEY=", out->secret_key, sizeof out->secret_key) || secret;
    }
    return access && secret;
}

static enum fgw_err create_file(int dir, struct fgw_credentials *out)
{
    struct fgw_buf text;
    int tmp = openat(dir, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tmp < 0) {
        return fgw_err_from_errno(errno);
    }
    make_keys(out);
    fgw_buf_init(&text, 0);
    (void)fgw_buf_appendf(&text, "FGW_ROOT_ACCESS_KEY=%s\nFGW_ROOT_SECRET_KEY=%s\n",
                          out->access_key, out->secret_key);
    enum fgw_err err =
        fgw_fs_create_durable(tmp, dir, "credentials", fgw_buf_bytes(&text), 0600, NULL);
    fgw_buf_deinit(&text);
    (void)close(tmp);
    return err;
}

static enum fgw_err load_file(const char *data_dir, struct fgw_credentials *out,
                              struct fgw_error *error)
{
    struct fgw_buf text;
    int dir = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        return fgw_error_set(error, FGW_ERR_IO, "%s: %s", data_dir, strerror(errno));
    }
    fgw_buf_init(&text, 4096);
    enum fgw_err err = fgw_fs_read_file(dir, "credentials", &text);
    if (err == FGW_ERR_NOT_FOUND) {
        err = create_file(dir, out);
    } else if (err == FGW_OK && !parse(fgw_buf_bytes(&text), out)) {
        err = fgw_error_set(error, FGW_ERR_CONFIG,
                            "%s/credentials does not hold FGW_ROOT_ACCESS_KEY and "
                            "FGW_ROOT_SECRET_KEY; correct it, or set both in the environment",
                            data_dir);
    }
    if (err != FGW_OK && (error == NULL || error->code == FGW_OK)) {
        (void)fgw_error_set(error, err, "%s/credentials: %s", data_dir, fgw_err_text(err));
    }
    out->from_file = true;
    fgw_buf_deinit(&text);
    (void)close(dir);
    return err;
}

enum fgw_err fgw_credentials_load(const struct fgw_config *config, struct fgw_credentials *out,
                                  struct fgw_error *error)
{
    memset(out, 0, sizeof *out);
    if (config->root_access_key != NULL && config->root_secret_key != NULL) {
        (void)snprintf(out->access_key, sizeof out->access_key, "%s", config->root_access_key);
        (void)snprintf(out->secret_key, sizeof out->secret_key, "%s", config->root_secret_key);
        return FGW_OK;
    }
    if (config->root_access_key != NULL || config->root_secret_key != NULL) {
        return fgw_error_set(error, FGW_ERR_CONFIG,
                             "FGW_ROOT_ACCESS_KEY and FGW_ROOT_SECRET_KEY go together; only %s is "
                             "set",
                             config->root_access_key != NULL ? "the first" : "the second");
    }
    return load_file(config->data_dir, out, error);
}
