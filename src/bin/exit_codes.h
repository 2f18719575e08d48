/* exit_codes.h: what the process says to scripts. Source: spec/interface.md section 6; 4 to 10 are
 * those of `fgw migrate`. */
#ifndef FGW_BIN_EXIT_CODES_H
#define FGW_BIN_EXIT_CODES_H

enum fgw_exit {
    FGW_EXIT_OK = 0,
    FGW_EXIT_INTERNAL = 1,
    FGW_EXIT_USAGE = 2,          /* usage or configuration; nothing was opened */
    FGW_EXIT_NOT_READY = 3,      /* migrations pending, or a wait reached its limit */
    FGW_EXIT_DRIFT = 4,          /* drift, edited or out-of-order migrations */
    FGW_EXIT_VERSION = 5,        /* data or schema newer or too old, incompatible */
    FGW_EXIT_DB_UNREACHABLE = 6, /* may be tried again */
    FGW_EXIT_STATEMENT = 7,      /* a statement failed */
    FGW_EXIT_LOCK_HELD = 8,      /* another process migrates */
    FGW_EXIT_LEASE_LOST = 9,
    FGW_EXIT_DECISION = 10, /* a person must decide: fgw migrate repair */
    FGW_EXIT_DATA_IN_USE = 11,
    FGW_EXIT_DATA_DAMAGED = 12,
    FGW_EXIT_ADDRESS_IN_USE = 13,
    FGW_EXIT_DATA_UNUSABLE = 14 /* not writable, not a directory, foreign files */
};

#endif
