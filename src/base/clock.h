/* clock.h: the two clocks of the engine. Ages and deadlines use boot time (CLOCK_BOOTTIME: counts
 * suspend, never jumps); what S3 shows to people uses the wall clock. Tests shift either one
 * through the environment (FGW_TEST_WALL_OFFSET_MS, read once at first use) or the setters. */
#ifndef FGW_BASE_CLOCK_H
#define FGW_BASE_CLOCK_H

#include <stdint.h>

uint64_t fgw_clock_boot_ns(void);
uint64_t fgw_clock_boot_ms(void);
/* Milliseconds since 1970-01-01T00:00:00Z. */
int64_t fgw_clock_wall_ms(void);
/* CPU time of the calling thread, in ns. */
uint64_t fgw_clock_thread_cpu_ns(void);
/* Blocks the calling thread: for threads of their own (committer, applier, care), never on a worker,
 * where fgw_fiber_sleep_ms waits. */
void fgw_clock_block_ms(uint32_t ms);
/* For tests: added to every later reading. */
void fgw_clock_set_wall_offset_ms(int64_t offset_ms);

#endif
