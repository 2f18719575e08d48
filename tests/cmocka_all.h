/* cmocka_all.h: cmocka with the standard headers it wants before it. */
#ifndef FGW_TESTS_CMOCKA_ALL_H
#define FGW_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#endif
