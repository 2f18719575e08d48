/* clock.c: see clock.h. */
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static _Atomic int64_t wall_offset_ms;
static pthread_once_t offset_once = PTHREAD_ONCE_INIT;

static void read_offset(void)
{
    const char *text = getenv("FGW_TEST_WALL_OFFSET_MS");
    if (text != NULL) {
        atomic_store(&wall_offset_ms, strtoll(text, NULL, 10));
    }
}

static uint64_t read_ns(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t fgw_clock_boot_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}

uint64_t fgw_clock_boot_ms(void)
{
    return read_ns(CLOCK_BOOTTIME) / 1000000U;
}

int64_t fgw_clock_wall_ms(void)
{
    (void)pthread_once(&offset_once, read_offset);
    return (int64_t)(read_ns(CLOCK_REALTIME) / 1000000U) + atomic_load(&wall_offset_ms);
}

uint64_t fgw_clock_thread_cpu_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

void fgw_clock_block_ms(uint32_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

void fgw_clock_set_wall_offset_ms(int64_t offset_ms)
{
    (void)pthread_once(&offset_once, read_offset);
    atomic_store(&wall_offset_ms, offset_ms);
}
