/* rng.h: random bytes from the kernel (getrandom), buffered per thread; safe after fork only if
 * the child execs. Fit for keys and identifiers. */
#ifndef FGW_BASE_RNG_H
#define FGW_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

void fgw_rng_fill(void *out, size_t len);
uint64_t fgw_rng_u64(void);
/* Uniform in [0, bound); bound > 0. */
uint64_t fgw_rng_below(uint64_t bound);

#endif
