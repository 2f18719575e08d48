/* cmd_recover.c: `fgw recover`: the index is rebuilt from checkpoint and log. */
#include <stdio.h>

#include "base/check.h"
#include "bin/data_verb.h"

static void print_damage(const struct fgw_storage_recovery *recovery)
{
    (void)printf(
        "damage was passed over: %llu places, %llu batches lost, %llu later changes refer to "
        "what was lost (the log above names each)\n",
        (unsigned long long)recovery->damages, (unsigned long long)recovery->lost_batches,
        (unsigned long long)recovery->misfits);
}

int fgw_cmd_recover(const struct fgw_command *command)
{
    struct fgw_config_option options[] = {
        {"skip-damaged", false, NULL, "go on behind damage; tells what is lost"}};
    struct fgw_config_input input = {.options = options, .option_count = FGW_COUNT_OF(options)};
    struct fgw_data_verb verb;
    int exit_code = fgw_data_verb_begin(command, &input, &verb);
    if (exit_code != FGW_EXIT_OK) {
        return exit_code;
    }
    verb.storage.rebuild_index = true;
    verb.storage.skip_damaged = options[0].value != NULL;
    exit_code = fgw_data_verb_open(&verb);
    if (exit_code == FGW_EXIT_OK) {
        struct fgw_storage_recovery recovery = fgw_storage_recovered(verb.store);
        struct fgw_storage_stats stats;
        fgw_storage_stats(verb.store, &stats);
        if (recovery.checkpoint != 0) {
            (void)printf("index made from checkpoints/%010llu.car\n",
                         (unsigned long long)recovery.checkpoint);
        }
        (void)printf("recovered %s: %llu batches replayed, %llu blocks, %llu bytes held\n",
                     verb.config.data_dir, (unsigned long long)recovery.batches,
                     (unsigned long long)stats.blocks, (unsigned long long)stats.live_bytes);
        if (recovery.damages > 0) {
            print_damage(&recovery);
        }
        if (recovery.damaged_groups > 0) {
            (void)printf("%llu group files are missing or too short: `fgw scrub` tells what misses "
                         "its bytes\n",
                         (unsigned long long)recovery.damaged_groups);
        }
    }
    fgw_data_verb_end(&verb);
    return exit_code;
}
