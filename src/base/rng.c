/* rng.c: see rng.h. */
#include "base/rng.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"

enum { POOL_SIZE = 1024 };

static _Thread_local uint8_t pool[POOL_SIZE];
static _Thread_local size_t pool_left;

static void kernel_fill(uint8_t *out, size_t len)
{
    while (len > 0) {
        ssize_t got = getrandom(out, len, 0);
        FGW_CHECK(got >= 0 || errno == EINTR);
        size_t filled = got < 0 ? 0 : (size_t)got;
        out += filled;
        len -= filled;
    }
}

void fgw_rng_fill(void *out, size_t len)
{
    if (len > POOL_SIZE / 4) {
        kernel_fill(out, len);
        return;
    }
    if (pool_left < len) {
        kernel_fill(pool, POOL_SIZE);
        pool_left = POOL_SIZE;
    }
    uint8_t *from = pool + POOL_SIZE - pool_left;
    memcpy(out, from, len);
    memset(from, 0, len);
    pool_left -= len;
}

uint64_t fgw_rng_u64(void)
{
    uint64_t value;
    fgw_rng_fill(&value, sizeof value);
    return value;
}

uint64_t fgw_rng_below(uint64_t bound)
{
    FGW_CHECK(bound > 0);
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t value;
    do {
        value = fgw_rng_u64();
    } while (value >= limit);
    return value % bound;
}
