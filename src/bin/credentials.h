/* credentials.h: the root identity of `fgw serve`: settings first, else DATA/credentials (0600),
 * made at the first start. */
#ifndef FGW_BIN_CREDENTIALS_H
#define FGW_BIN_CREDENTIALS_H

#include "config/config.h"

struct fgw_credentials {
    char access_key[132];
    char secret_key[260];
    bool from_file;
};

/* data_dir exists. Errors: CONFIG (one of the two settings without the other, a file that cannot be
 * understood), IO. */
enum fgw_err fgw_credentials_load(const struct fgw_config *config, struct fgw_credentials *out,
                                  struct fgw_error *error) FGW_MUST_CHECK;

#endif
