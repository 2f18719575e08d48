/* cmd_scrub.c: `fgw scrub`: everything that is held is read and checked: by the process that runs,
 * or, when none does, by this one. */
#include <stdio.h>
#include <string.h>

#include "bin/admin_client.h"
#include "bin/data_verb.h"
#include "bin/server.h"
#include "bin/store_calls.h"
#include "event/fiber.h"

enum { POLL_MS = 500, MIB = 1024 * 1024, RATE_MAX = 1024 * 1024 };
enum option { OPT_RATE, OPT_JSON, OPT_COUNT };

struct scrub {
    struct fgw_data_verb verb;
    struct fgw_config_option options[OPT_COUNT];
    uint64_t bytes_per_s;
    bool json;
    struct fgw_storage_scrub job;
    json_t *findings; /* of this process; printed one by one unless --json */
    json_t *answer;
    int exit_code;
};

static uint64_t number(const json_t *answer, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(answer, name));
}

/* -- what is printed ----------------------------------------------------------------------------- */

static void print_finding(const json_t *finding)
{
    const char *cid = json_string_value(json_object_get(finding, "cid"));
    const char *key = json_string_value(json_object_get(finding, "key"));
    (void)printf("damaged %s", json_string_value(json_object_get(finding, "what")));
    if (cid != NULL && cid[0] != '\0') {
        (void)printf(" %s", cid);
    }
    if (number(finding, "group") != 0) {
        const char *what = json_string_value(json_object_get(finding, "what"));
        (void)printf(" at %s/%010llu.car offset %llu",
                     strcmp(what, "checkpoint") == 0 ? "checkpoints" : "groups",
                     (unsigned long long)number(finding, "group"),
                     (unsigned long long)number(finding, "offset"));
    }
    if (key != NULL) {
        (void)printf(" key %s", key);
    }
    (void)printf("\n");
    (void)fflush(stdout);
}

static void print_sums(const json_t *answer)
{
    (void)printf("%llu blocks with %llu bytes, %llu lists, %llu log batches read: %llu damaged\n",
                 (unsigned long long)number(answer, "blocks"),
                 (unsigned long long)number(answer, "bytes"),
                 (unsigned long long)number(answer, "lists"),
                 (unsigned long long)number(answer, "log_batches"),
                 (unsigned long long)number(answer, "damaged"));
}

static int judge(const json_t *answer)
{
    const char *failed = json_string_value(json_object_get(answer, "failed"));
    if (failed != NULL) {
        (void)fprintf(stderr, "fgw: error: the scrub stopped: %s\n", failed);
        return fgw_exit_of((enum fgw_err)number(answer, "failed_code"));
    }
    return number(answer, "damaged") > 0 ? FGW_EXIT_DATA_DAMAGED : FGW_EXIT_OK;
}

static int print_answer(const struct scrub *scrub)
{
    if (scrub->json) {
        (void)json_dumpf(scrub->answer, stdout, JSON_INDENT(2));
        (void)printf("\n");
    } else {
        size_t index;
        const json_t *finding;
        json_array_foreach(json_object_get(scrub->answer, "findings"), index, finding)
        {
            print_finding(finding);
        }
        print_sums(scrub->answer);
    }
    return judge(scrub->answer);
}

/* -- in the process that runs -------------------------------------------------------------------- */

static int ask(struct scrub *scrub, const char *method, const json_t *body)
{
    struct fgw_admin_call call = {method, "/admin/scrub", body};
    json_decref(scrub->answer);
    scrub->answer = NULL;
    return fgw_admin_ask_process(&scrub->verb.config, &call, &scrub->answer);
}

static void show_progress(const struct scrub *scrub)
{
    uint64_t held = number(scrub->answer, "held_bytes");
    if (!scrub->json && held > 0) {
        (void)fprintf(stderr, "\r%llu of about %llu MiB read ",
                      (unsigned long long)(number(scrub->answer, "bytes") / MIB),
                      (unsigned long long)(held / MIB));
    }
}

static void wait_for_end(struct scrub *scrub)
{
    bool shown = false;
    int status = 200;
    while (status == 200 && json_is_true(json_object_get(scrub->answer, "running"))) {
        fgw_fiber_sleep_ms(POLL_MS);
        status = ask(scrub, "GET", NULL);
        show_progress(scrub);
        shown = true;
    }
    if (shown && !scrub->json) {
        (void)fprintf(stderr, "\n");
    }
    if (status != 200) {
        (void)fprintf(stderr, "fgw: error: the process ended\n");
        scrub->exit_code = FGW_EXIT_INTERNAL;
    }
}

/* False when no process answers. */
static bool ask_process(struct scrub *scrub)
{
    json_t *body = json_pack("{s:I}", "bytes_per_s", (json_int_t)scrub->bytes_per_s);
    int status = ask(scrub, "POST", body);
    json_decref(body);
    if (status == 202) {
        wait_for_end(scrub);
    } else if (status != 0) {
        const char *message = json_string_value(json_object_get(scrub->answer, "message"));
        (void)fprintf(stderr, "fgw: error: %s\n", message == NULL ? "refused" : message);
        scrub->exit_code = FGW_EXIT_INTERNAL;
    }
    return status != 0;
}

/* -- in this one --------------------------------------------------------------------------------- */

static void on_damage(void *context, const struct fgw_storage_damage *damage)
{
    struct scrub *scrub = context;
    char cid[FGW_CID_TEXT_SIZE] = "";
    if (damage->cid.bytes[0] != 0) {
        fgw_cid_text(&damage->cid, cid);
    }
    json_t *finding = json_pack("{s:s,s:s,s:I,s:I}", "what", damage->what, "cid", cid, "group",
                                (json_int_t)damage->group, "offset", (json_int_t)damage->offset);
    if (damage->owner != NULL) {
        json_t *key = json_stringn((const char *)damage->owner->key.ptr, damage->owner->key.len);
        (void)json_object_set_new(finding, "key", key == NULL ? json_string("?") : key);
    }
    if (scrub->json) {
        (void)json_array_append_new(scrub->findings, finding);
    } else {
        print_finding(finding);
        json_decref(finding);
    }
}

static void scrub_directly(struct scrub *scrub)
{
    scrub->exit_code = fgw_data_verb_open(&scrub->verb);
    if (scrub->exit_code != FGW_EXIT_OK) {
        return;
    }
    struct fgw_storage_scrub *job = &scrub->job;
    *job = (struct fgw_storage_scrub){
        .on_damage = on_damage, .context = scrub, .bytes_per_s = scrub->bytes_per_s};
    scrub->findings = json_array();
    enum fgw_err err = fgw_storage_scrub(scrub->verb.store, job);
    scrub->answer = json_pack("{s:b,s:I,s:I,s:I,s:I,s:I,s:o,s:I}", "running", 0, "blocks",
                              (json_int_t)job->blocks, "bytes", (json_int_t)job->bytes, "lists",
                              (json_int_t)job->blobs, "log_batches", (json_int_t)job->log_batches,
                              "damaged", (json_int_t)job->damaged, "findings", scrub->findings,
                              "failed_code", (json_int_t)err);
    (void)json_object_set_new(scrub->answer, "failed",
                              err == FGW_OK ? json_null() : json_string(fgw_err_text(err)));
}

static void run(void *arg)
{
    struct scrub *scrub = arg;
    if (!ask_process(scrub)) {
        scrub_directly(scrub);
    }
}

static bool take_rate(struct scrub *scrub)
{
    const char *text = scrub->options[OPT_RATE].value;
    uint64_t rate = 0;
    if (text == NULL) {
        return true;
    }
    if (fgw_bytes_to_u64(fgw_bytes_str(text), &rate) != FGW_OK || rate == 0 || rate > RATE_MAX) {
        (void)fprintf(stderr, "fgw: error: --rate takes MiB a second, a number from 1 on\n");
        return false;
    }
    scrub->bytes_per_s = rate * MIB;
    return true;
}

int fgw_cmd_scrub(const struct fgw_command *command)
{
    struct scrub scrub = {.options = {[OPT_RATE] = {"rate", true, NULL, "MiB a second at most"},
                                      [OPT_JSON] = {"json", false, NULL, "one JSON document"}}};
    struct fgw_config_input input = {.options = scrub.options, .option_count = OPT_COUNT};
    int exit_code = fgw_data_verb_begin(command, &input, &scrub.verb);
    if (exit_code != FGW_EXIT_OK) {
        return exit_code;
    }
    scrub.json = scrub.options[OPT_JSON].value != NULL;
    scrub.exit_code = take_rate(&scrub) ? FGW_EXIT_OK : FGW_EXIT_USAGE;
    if (scrub.exit_code == FGW_EXIT_OK) {
        fgw_fiber_run_alone(run, &scrub);
    }
    if (scrub.exit_code == FGW_EXIT_OK) {
        scrub.exit_code = print_answer(&scrub);
    }
    json_decref(scrub.answer);
    fgw_data_verb_end(&scrub.verb);
    return scrub.exit_code;
}
