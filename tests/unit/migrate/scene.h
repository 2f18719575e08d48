/* scene.h: sets, fixtures and checks that the rows of spec/migrations.md E3 share. */
#ifndef FGW_TESTS_MIGRATE_SCENE_H
#define FGW_TESTS_MIGRATE_SCENE_H

#include "cmocka_all.h"
#include "sim.h"

/* Built once: the embedded shared set, a small set of three files, the same with a contract file,
 * and variants of it. */
struct scene_sets {
    struct fgw_migrate_set shared, node;
    struct fgw_migrate_set small;     /* multipart, alpha, beta */
    struct fgw_migrate_set older;     /* multipart, alpha */
    struct fgw_migrate_set contract;  /* small and a contract file that drops alpha.old, beta */
    struct fgw_migrate_set newer;     /* small and one more expand file */
    struct fgw_migrate_set edited;    /* small, alpha with another column type */
    struct fgw_migrate_set commented; /* small, alpha with other comments and blanks */
    struct fgw_migrate_set appended;  /* small, alpha with one more statement */
    struct fgw_migrate_set inserted;  /* small and a file between alpha and beta */
    struct fgw_migrate_set gap;       /* small without alpha */
};
extern struct scene_sets sets;
extern struct sim sim; /* one at a time; in static memory because it is large */

int scene_setup(void **state);
int scene_teardown(void **state);
/* Each test: a fresh simulation in, none left behind. */
int scene_begin(void **state);
int scene_end(void **state);

/* How many seeds a scenario runs with; FGW_SIM_SEEDS multiplies (1 = as given). */
int scene_seeds(int usual);

/* No simulation failure, and every process that failed said so with a next command (I6). */
void scene_check_reports(void);
/* I1, I4, I5 and a tidy end: catalog as the model, version, one clean mirror row, no intent (the
 * lock may still name a dead holder: it expires when somebody has something to do); one more `up` exits 0 and writes nothing. */
void scene_check_final(const struct fgw_migrate_set *set);
/* `up` until it says 0, at most `runs` times. */
void scene_converge(const struct fgw_migrate_set *set, int runs);
/* Faults off. */
void scene_calm(void);
/* Runs a command alone with these options changed. */
struct sim_proc *scene_command(const struct fgw_migrate_set *set, enum sim_command command,
                               const struct fgw_migrate_options *changes);

/* -- databases as found in the field -- */
void scene_legacy(int64_t version); /* every legacy table up to it, mirror clean there */
void scene_compose(
    int s3objects_columns);        /* the init service's tables, mirror dirty at 1754293669 */
void scene_upload_rows(int count); /* rows in MultipartUploads of the init service */
/* What golang-migrate's reader would say: -1 none, else LIMIT 1; *out_dirty. */
int64_t scene_go_version(bool *out_dirty);

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, scene_begin, scene_end)

#endif
