/* test_config.h: one load with its messages, for the tests of src/config. */
#ifndef FGW_TESTS_TEST_CONFIG_H
#define FGW_TESTS_TEST_CONFIG_H

#include "cmocka_all.h"

#include "config/config.h"

enum { TEST_WORDS_MAX = 16 };

struct loaded {
    enum fgw_err err;
    struct fgw_config config; /* to be freed when err is FGW_OK */
    struct fgw_buf errors;    /* NUL-terminated for strstr */
    struct fgw_buf warnings;
    size_t error_count;
    size_t warning_count;
};

/* Words are separated by '|'; NULL = none. */
void load_from(enum fgw_role role, const char *arguments, const char *environment,
               struct loaded *out);
void loaded_free(struct loaded *loaded);
/* The number of errors, and a part of them. */
void expect_errors(enum fgw_role role, const char *arguments, const char *environment, size_t count,
                   const char *part);

int run_value_tests(void);

#endif
