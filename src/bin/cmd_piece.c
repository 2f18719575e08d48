/* cmd_piece.c: `fgw piece`: pieces for Filecoin out of sealed groups: by the process that runs, or,
 * when none does, by this one. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bin/admin_client.h"
#include "bin/data_verb.h"
#include "bin/piece_calls.h"
#include "bin/server.h"
#include "event/fiber.h"

enum { POLL_MS = 300, MIB = 1024 * 1024, RATE_MAX = 1024 * 1024 };
enum option { OPT_TO, OPT_SIZE, OPT_RATE, OPT_JSON, OPT_COUNT };

static const char *const COLUMNS[] = {"piece_cid", "payload_bytes", "padded_bytes", "blobs",
                                      "objects",   "group",         "present",      "made",
                                      "car",       NULL};

struct piece_verb {
    struct fgw_data_verb verb;
    struct fgw_config_option options[OPT_COUNT];
    const char *words[2];
    bool json;
    json_t *order;  /* body of the call */
    json_t *answer; /* of the call */
    char to[PATH_MAX];
    int exit_code;
};

static int usage(const char *message)
{
    (void)fprintf(stderr, "fgw: error: %s\n", message);
    return FGW_EXIT_USAGE;
}

static int print(const struct piece_verb *piece, const json_t *answer)
{
    return fgw_admin_print(answer, "pieces", COLUMNS, piece->json);
}

/* -- list ---------------------------------------------------------------------------------------- */

static int list(struct piece_verb *piece)
{
    struct fgw_error error;
    const struct fgw_config *config = &piece->verb.config;
    if (config->admin_url != NULL) {
        struct fgw_admin_call call = {.method = "GET", .path = "/admin/pieces"};
        int exit_code = fgw_admin_call(config, &call, &piece->answer);
        return exit_code == FGW_EXIT_OK ? print(piece, piece->answer) : exit_code;
    }
    json_t *pieces = NULL;
    fgw_error_init(&error);
    enum fgw_err err = fgw_piece_list(config->data_dir, &pieces, &error);
    if (err != FGW_OK) {
        (void)fprintf(stderr, "fgw: error: %s\n", fgw_error_message(&error));
        return err == FGW_ERR_CORRUPT ? FGW_EXIT_DATA_DAMAGED : FGW_EXIT_DATA_UNUSABLE;
    }
    piece->answer = json_pack("{s:o}", "pieces", pieces);
    return print(piece, piece->answer);
}

/* -- export in the process that runs ------------------------------------------------------------- */

static int ask(struct piece_verb *piece, const char *method, const json_t *body)
{
    struct fgw_admin_call call = {method, "/admin/pieces/export", body};
    json_decref(piece->answer);
    piece->answer = NULL;
    return fgw_admin_ask_process(&piece->verb.config, &call, &piece->answer);
}

static void show_progress(const struct piece_verb *piece, uint64_t bytes, uint64_t bytes_total)
{
    if (!piece->json && bytes_total > 0) {
        (void)fprintf(stderr, "\r%llu of about %llu MiB written ",
                      (unsigned long long)(bytes / MIB), (unsigned long long)(bytes_total / MIB));
    }
}

static uint64_t number(const json_t *answer, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(answer, name));
}

static void wait_for_end(struct piece_verb *piece)
{
    bool shown = false;
    int status = 200;
    while (status == 200 && json_is_true(json_object_get(piece->answer, "running"))) {
        fgw_fiber_sleep_ms(POLL_MS);
        status = ask(piece, "GET", NULL);
        show_progress(piece, number(piece->answer, "bytes"),
                      number(piece->answer, "bytes_total"));
        shown = true;
    }
    if (shown && !piece->json) {
        (void)fprintf(stderr, "\n");
    }
    if (status != 200) {
        (void)fprintf(stderr, "fgw: error: the process ended\n");
        piece->exit_code = FGW_EXIT_INTERNAL;
        return;
    }
    const char *failed = json_string_value(json_object_get(piece->answer, "failed"));
    if (failed != NULL) {
        (void)fprintf(stderr, "fgw: error: %s\n",
                      json_string_value(json_object_get(piece->answer, "message")));
        bool damaged = strcmp(failed, fgw_err_name(FGW_ERR_CORRUPT)) == 0;
        piece->exit_code = damaged ? FGW_EXIT_DATA_DAMAGED : FGW_EXIT_INTERNAL;
    }
}

/* False when no process answers. */
static bool ask_process(struct piece_verb *piece)
{
    int status = ask(piece, "POST", piece->order);
    if (status == 202) {
        status = 200;
        wait_for_end(piece);
    } else if (status != 0) {
        const char *message = json_string_value(json_object_get(piece->answer, "message"));
        (void)fprintf(stderr, "fgw: error: %s\n", message == NULL ? "refused" : message);
        piece->exit_code = status == 400 ? FGW_EXIT_USAGE : FGW_EXIT_INTERNAL;
    }
    return status != 0;
}

/* -- in this one --------------------------------------------------------------------------------- */

static bool on_progress(void *context, const struct fgw_piece_progress *progress)
{
    const struct piece_verb *piece = context;
    static uint64_t shown;
    if (progress->bytes / (16 * MIB) != shown) {
        shown = progress->bytes / (16 * MIB);
        show_progress(piece, progress->bytes, progress->bytes_total);
    }
    return true;
}

static void export_directly(struct piece_verb *piece)
{
    struct fgw_error error;
    struct fgw_piece_export options;
    fgw_error_init(&error);
    enum fgw_err err = fgw_piece_options(piece->order, &options, &error);
    piece->exit_code = err == FGW_OK ? fgw_data_verb_open(&piece->verb) : usage(error.message);
    if (piece->exit_code != FGW_EXIT_OK) {
        return;
    }
    options.storage = piece->verb.store;
    options.data_dir = piece->verb.config.data_dir;
    options.on_progress = on_progress;
    options.context = piece;
    json_t *pieces = json_array();
    err = fgw_piece_export(&options, pieces, &error);
    json_decref(piece->answer);
    piece->answer = json_pack("{s:o}", "pieces", pieces);
    if (err != FGW_OK) {
        (void)fprintf(stderr, "fgw: error: %s\n", fgw_error_message(&error));
        piece->exit_code = err == FGW_ERR_CORRUPT ? FGW_EXIT_DATA_DAMAGED : FGW_EXIT_INTERNAL;
    }
}

static void run_export(void *arg)
{
    struct piece_verb *piece = arg;
    if (!ask_process(piece)) {
        export_directly(piece);
    }
}

/* -- what is wanted ------------------------------------------------------------------------------ */

/* "32GiB"; the unit is a must. */
static bool parse_size(const char *text, uint64_t *out)
{
    static const struct {
        const char *unit;
        unsigned shift;
    } UNITS[] = {{"MiB", 20}, {"GiB", 30}};
    struct fgw_bytes whole = fgw_bytes_str(text);
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++) {
        uint64_t value = 0;
        struct fgw_bytes unit = fgw_bytes_str(UNITS[i].unit);
        if (fgw_bytes_ends_with(whole, unit) &&
            fgw_bytes_to_u64(fgw_bytes_sub(whole, 0, whole.len - unit.len), &value) == FGW_OK &&
            value > 0 && value <= FGW_PIECE_PADDED_MAX >> UNITS[i].shift) {
            *out = value << UNITS[i].shift;
            return true;
        }
    }
    return false;
}

/* The body of the call out of the flags; false: said already. */
static bool make_order(struct piece_verb *piece)
{
    uint64_t group = 0;
    uint64_t size = FGW_PIECE_PADDED_DEFAULT;
    uint64_t rate = FGW_PIECE_RATE_DEFAULT / MIB;
    const char *size_text = piece->options[OPT_SIZE].value;
    const char *rate_text = piece->options[OPT_RATE].value;
    const char *to = piece->options[OPT_TO].value;
    if (fgw_bytes_to_u64(fgw_bytes_str(piece->words[1]), &group) != FGW_OK) {
        return usage("GROUP is the id of a group (fgw group list)") == FGW_EXIT_OK;
    }
    if (size_text != NULL && (!parse_size(size_text, &size) || (size & (size - 1)) != 0)) {
        return usage("--size takes a power of two from 1MiB to 64GiB") == FGW_EXIT_OK;
    }
    if (rate_text != NULL &&
        (fgw_bytes_to_u64(fgw_bytes_str(rate_text), &rate) != FGW_OK || rate > RATE_MAX)) {
        return usage("--rate takes MiB a second, 0 for no limit") == FGW_EXIT_OK;
    }
    if (to != NULL && piece->verb.config.admin_url != NULL) {
        return usage("--to works on the machine of the process only, without --admin") ==
               FGW_EXIT_OK;
    }
    if (to != NULL && realpath(to, piece->to) == NULL) {
        (void)fprintf(stderr, "fgw: error: --to %s: %s\n", to, strerror(errno));
        return false;
    }
    to = to != NULL ? piece->to : NULL;
    piece->order = json_pack("{s:I,s:I,s:I,s:s*}", "group", (json_int_t)group, "padded_max",
                             (json_int_t)size, "bytes_per_s", (json_int_t)(rate * MIB), "to", to);
    return true;
}

static int export_group(struct piece_verb *piece)
{
    if (!make_order(piece)) {
        return FGW_EXIT_USAGE;
    }
    fgw_fiber_run_alone(run_export, piece);
    if (json_is_array(json_object_get(piece->answer, "pieces")) &&
        (piece->exit_code == FGW_EXIT_OK ||
         json_array_size(json_object_get(piece->answer, "pieces")) > 0)) {
        json_t *only = json_pack("{s:O}", "pieces", json_object_get(piece->answer, "pieces"));
        int printed = print(piece, only);
        piece->exit_code = piece->exit_code == FGW_EXIT_OK ? printed : piece->exit_code;
        json_decref(only);
    }
    return piece->exit_code;
}

static int run(struct piece_verb *piece, size_t word_count)
{
    const char *what = word_count > 0 ? piece->words[0] : "";
    if (strcmp(what, "list") == 0 && word_count == 1) {
        return list(piece);
    }
    if (strcmp(what, "export") == 0 && word_count == 2) {
        return export_group(piece);
    }
    return usage("usage: fgw piece list | export GROUP [--to DIR] [--size SIZE] [--rate MIB] "
                 "[--json]");
}

int fgw_cmd_piece(const struct fgw_command *command)
{
    struct piece_verb *piece = fgw_xcalloc(1, sizeof *piece);
    piece->options[OPT_TO] =
        (struct fgw_config_option){"to", true, NULL, "folder for the files, else DATA/pieces"};
    piece->options[OPT_SIZE] = (struct fgw_config_option){
        "size", true, NULL, "padded size of a piece at most, a power of two; 32GiB"};
    piece->options[OPT_RATE] =
        (struct fgw_config_option){"rate", true, NULL, "MiB a second at most, 0: no limit; 64"};
    piece->options[OPT_JSON] = (struct fgw_config_option){"json", false, NULL, "one JSON document"};
    struct fgw_config_input input = {.options = piece->options,
                                     .option_count = OPT_COUNT,
                                     .positionals = piece->words,
                                     .positional_max = 2};
    int exit_code = fgw_data_verb_begin(command, &input, &piece->verb);
    if (exit_code == FGW_EXIT_OK) {
        piece->json = piece->options[OPT_JSON].value != NULL;
        exit_code = run(piece, input.positional_count);
        json_decref(piece->answer);
        json_decref(piece->order);
        fgw_data_verb_end(&piece->verb);
    }
    fgw_xfree(piece);
    return exit_code;
}
