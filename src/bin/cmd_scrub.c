/* cmd_scrub.c: `fgw scrub`: everything that is held is read and checked. */
#include <stdio.h>

#include "bin/data_verb.h"
#include "bin/server.h"
#include "event/fiber.h"

struct scrub {
    struct fgw_storage *store;
    struct fgw_storage_scrub job;
    enum fgw_err result;
};

static void print_damage(void *context, const struct fgw_storage_damage *damage)
{
    char cid[FGW_CID_TEXT_SIZE];
    (void)context;
    (void)printf("damaged %s", damage->what);
    if (damage->cid.bytes[0] != 0) {
        fgw_cid_text(&damage->cid, cid);
        (void)printf(" %s", cid);
    }
    if (damage->group != 0) {
        (void)printf(" at %s/%010llu.car offset %llu",
                     strcmp(damage->what, "checkpoint") == 0 ? "checkpoints" : "groups",
                     (unsigned long long)damage->group, (unsigned long long)damage->offset);
    }
    if (damage->owner != NULL) {
        (void)printf(" key %.*s", FGW_FMT(damage->owner->key));
    }
    (void)printf("\n");
    (void)fflush(stdout);
}

static void run(void *arg)
{
    struct scrub *scrub = arg;
    scrub->result = fgw_storage_scrub(scrub->store, &scrub->job);
}

static int scrub_all(struct fgw_storage *store)
{
    struct scrub scrub = {.store = store, .job = {.on_damage = print_damage}};
    fgw_fiber_run_alone(run, &scrub);
    if (scrub.result != FGW_OK) {
        (void)fprintf(stderr, "fgw: error: the scrub stopped: %s\n", fgw_err_text(scrub.result));
        return fgw_exit_of(scrub.result);
    }
    (void)printf("%llu blocks with %llu bytes, %llu lists, %llu log batches read: %llu damaged\n",
                 (unsigned long long)scrub.job.blocks, (unsigned long long)scrub.job.bytes,
                 (unsigned long long)scrub.job.blobs, (unsigned long long)scrub.job.log_batches,
                 (unsigned long long)scrub.job.damaged);
    return scrub.job.damaged > 0 ? FGW_EXIT_DATA_DAMAGED : FGW_EXIT_OK;
}

int fgw_cmd_scrub(const struct fgw_command *command)
{
    struct fgw_config_input input = {0};
    struct fgw_data_verb verb;
    int exit_code = fgw_data_verb_begin(command, &input, &verb);
    if (exit_code != FGW_EXIT_OK) {
        return exit_code;
    }
    exit_code = fgw_data_verb_open(&verb);
    if (exit_code == FGW_EXIT_OK) {
        exit_code = scrub_all(verb.store);
    }
    fgw_data_verb_end(&verb);
    return exit_code;
}
