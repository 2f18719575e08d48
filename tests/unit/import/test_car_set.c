/* CARs on a disk: found, read and checked; cut at every byte, changed at every byte, noise. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "import/car_set.h"

static char folder[64];
static unsigned notes;

static void note(void *context, const char *file, uint64_t offset, const char *what)
{
    (void)context;
    (void)offset;
    assert_non_null(file);
    assert_non_null(what);
    notes++;
}

static void write_file(const char *name, struct fgw_bytes content)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content.ptr, content.len), (ssize_t)content.len);
    assert_int_equal(close(fd), 0);
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/fgw-car-set-XXXXXX");
    notes = 0;
    return mkdtemp(folder) == NULL;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void add_block(struct fgw_buf *car, const char *text)
{
    uint8_t head[FGW_CAR_SECTION_HEAD_MAX];
    struct fgw_cid cid = fgw_cid_of(FGW_CODEC_RAW, fgw_bytes_str(text));
    size_t len = fgw_car_section_head_encode(&cid, strlen(text), head);
    assert_int_equal(fgw_buf_append(car, fgw_bytes(head, len)), FGW_OK);
    assert_int_equal(fgw_buf_append_str(car, text), FGW_OK);
}

static void make_car(struct fgw_buf *car)
{
    uint8_t header[FGW_CAR_HEADER_SIZE];
    struct fgw_cid root = fgw_car_placeholder_root();
    fgw_buf_init(car, 0);
    fgw_car_header_encode(&root, header);
    assert_int_equal(fgw_buf_append(car, fgw_bytes(header, sizeof header)), FGW_OK);
    add_block(car, "one");
    add_block(car, "another");
}

static struct fgw_car_set *open_set(void)
{
    struct fgw_car_set *set = NULL;
    struct fgw_error error;
    fgw_error_init(&error);
    assert_int_equal(fgw_car_set_open(folder, note, NULL, &set, &error), FGW_OK);
    return set;
}

static enum fgw_err read_text(const struct fgw_car_set *set, const char *text,
                              struct fgw_error *error)
{
    struct fgw_buf out;
    uint8_t digest[FGW_SHA256_SIZE];
    fgw_error_init(error);
    fgw_buf_init(&out, FGW_CAR_BLOCK_MAX);
    fgw_sha256(fgw_bytes_str(text), digest);
    enum fgw_err err = fgw_car_set_read(set, digest, &out, error);
    if (err == FGW_OK) {
        assert_true(fgw_bytes_eq_str(fgw_buf_bytes(&out), text));
    } else {
        assert_int_equal(out.len, 0);
    }
    fgw_buf_deinit(&out);
    return err;
}

static void found_and_read(void **state)
{
    (void)state;
    char path[160];
    struct fgw_buf car;
    struct fgw_error error;
    make_car(&car);
    (void)snprintf(path, sizeof path, "%s/deeper", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file("a.car", fgw_buf_bytes(&car));
    write_file("deeper/b.car", fgw_buf_bytes(&car));
    write_file("other.txt", FGW_LIT("not looked at"));
    struct fgw_car_set *set = open_set();
    assert_int_equal(fgw_car_set_file_count(set), 2);
    assert_int_equal(fgw_car_set_block_count(set), 4);
    assert_int_equal(notes, 0);
    assert_int_equal(read_text(set, "one", &error), FGW_OK);
    assert_int_equal(read_text(set, "another", &error), FGW_OK);
    assert_int_equal(read_text(set, "neither", &error), FGW_ERR_NOT_FOUND);
    fgw_car_set_free(set);
    fgw_buf_deinit(&car);
}

static void no_folder_no_cars(void **state)
{
    (void)state;
    struct fgw_car_set *set = NULL;
    struct fgw_error error;
    fgw_error_init(&error);
    assert_int_equal(fgw_car_set_open(folder, note, NULL, &set, &error), FGW_ERR_NOT_FOUND);
    assert_int_equal(fgw_car_set_open("/nonexistent/x", note, NULL, &set, &error),
                     FGW_ERR_NOT_FOUND);
    assert_null(set);
}

static void cut_at_every_byte(void **state)
{
    (void)state;
    struct fgw_buf car;
    struct fgw_error error;
    make_car(&car);
    size_t second = FGW_CAR_HEADER_SIZE + fgw_car_section_size(3);
    for (size_t len = 0; len < car.len; len++) {
        notes = 0;
        write_file("cut.car", fgw_bytes(car.ptr, len));
        struct fgw_car_set *set = open_set();
        bool whole = len == FGW_CAR_HEADER_SIZE || len == second;
        assert_int_equal(notes, whole ? 0 : 1);
        assert_int_equal(read_text(set, "one", &error), len < second ? FGW_ERR_NOT_FOUND : FGW_OK);
        assert_int_equal(read_text(set, "another", &error), FGW_ERR_NOT_FOUND);
        fgw_car_set_free(set);
    }
    fgw_buf_deinit(&car);
}

/* Whatever is changed: no wrong bytes come out, and what stands before the change is found. */
static void changed_at_every_byte(void **state)
{
    (void)state;
    struct fgw_buf car;
    struct fgw_error error;
    make_car(&car);
    size_t second = FGW_CAR_HEADER_SIZE + fgw_car_section_size(3);
    for (size_t at = 0; at < car.len; at++) {
        car.ptr[at] ^= 0xff;
        write_file("changed.car", fgw_buf_bytes(&car));
        struct fgw_car_set *set = open_set();
        enum fgw_err one = read_text(set, "one", &error);
        enum fgw_err another = read_text(set, "another", &error);
        if (at >= second) {
            assert_int_equal(one, FGW_OK);
            assert_int_not_equal(another, FGW_OK);
        }
        fgw_car_set_free(set);
        car.ptr[at] ^= 0xff;
    }
    fgw_buf_deinit(&car);
}

static void a_damaged_copy_is_made_good_by_another(void **state)
{
    (void)state;
    struct fgw_buf car;
    struct fgw_error error;
    make_car(&car);
    car.ptr[car.len - 1] ^= 1;
    write_file("a.car", fgw_buf_bytes(&car));
    struct fgw_car_set *set = open_set();
    assert_int_equal(read_text(set, "another", &error), FGW_ERR_CORRUPT);
    assert_non_null(strstr(error.message, "a.car offset "));
    fgw_car_set_free(set);
    car.ptr[car.len - 1] ^= 1;
    write_file("b.car", fgw_buf_bytes(&car));
    set = open_set();
    assert_int_equal(read_text(set, "another", &error), FGW_OK);
    fgw_car_set_free(set);
    fgw_buf_deinit(&car);
}

static void noise_and_padding(void **state)
{
    (void)state;
    struct fgw_buf car;
    struct fgw_error error;
    make_car(&car);
    uint8_t zeros[100] = {0};
    assert_int_equal(fgw_buf_append(&car, fgw_bytes(zeros, sizeof zeros)), FGW_OK);
    write_file("padded.car", fgw_buf_bytes(&car));
    struct fgw_car_set *set = open_set();
    assert_int_equal(notes, 0);
    assert_int_equal(read_text(set, "another", &error), FGW_OK);
    fgw_car_set_free(set);
    write_file("empty.car", fgw_bytes(NULL, 0));
    write_file("v2.car", FGW_LIT("\x0a\xa1\x67version\x02 and more"));
    write_file("long.car", FGW_LIT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01 and more"));
    set = open_set();
    assert_int_equal(notes, 3);
    assert_int_equal(read_text(set, "one", &error), FGW_OK);
    fgw_car_set_free(set);
    fgw_buf_deinit(&car);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(found_and_read, setup, teardown),
        cmocka_unit_test_setup_teardown(no_folder_no_cars, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_at_every_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(changed_at_every_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_copy_is_made_good_by_another, setup, teardown),
        cmocka_unit_test_setup_teardown(noise_and_padding, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
