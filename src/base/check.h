/* check.h: always-on checks for programmer errors. Bytes from network or disk are never checked
 * with these; they return an error. */
#ifndef FGW_BASE_CHECK_H
#define FGW_BASE_CHECK_H

/* Prints file, line and the expression to standard error and aborts. */
__attribute__((noreturn, cold)) void fgw_check_failed(const char *file, int line,
                                                      const char *expression);

#define FGW_CHECK(expression) \
    do { \
        if (__builtin_expect(!(expression), 0)) { \
            fgw_check_failed(__FILE__, __LINE__, #expression); \
        } \
    } while (0)

#define FGW_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The struct that holds `member` at `pointer`. */
#define FGW_CONTAINER_OF(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
