/* test_channel.c: handshake and frames over a socket pair; whatever is changed on the way ends the
 * channel, and nothing is taken for an authentic frame. The peer of a hostile case speaks bytes. */
#include <stdlib.h>

#include "cmocka_all.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "blockapi/channel.h"
#include "event/fiber.h"

static const struct fgw_bytes FIRST = {(const uint8_t *)"the first secret of a cluster, long", 35};
static const struct fgw_bytes SECOND = {(const uint8_t *)"another secret of the cluster, long", 35};

struct pair {
    struct fgw_conn *client_conn;
    struct fgw_conn *server_conn;
    struct fgw_channel client;
    struct fgw_channel server;
    struct fgw_bytes client_secret;
    enum fgw_err accepted;
    uint8_t kind;
    struct fgw_buf first;
    struct fgw_wait done;
    void (*fn)(struct pair *pair);
};

static void serve(void *arg)
{
    struct pair *pair = arg;
    struct fgw_bytes secrets[] = {FIRST, SECOND};
    struct fgw_channel_secrets list = {secrets, 2};
    struct fgw_bytes payload = {NULL, 0};
    pair->server.epoch = 7;
    memset(pair->server.store_id, 0xab, sizeof pair->server.store_id);
    pair->accepted =
        fgw_channel_accept(&pair->server, pair->server_conn, &list, &pair->kind, &payload);
    if (pair->accepted == FGW_OK) {
        (void)fgw_buf_append(&pair->first, payload);
    }
    fgw_wait_signal(&pair->done);
}

static void with_pair(void *arg)
{
    struct pair *pair = arg;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    pair->client_conn = fgw_conn_new(fgw_loop_current(), fds[0]);
    pair->server_conn = fgw_conn_new(fgw_loop_current(), fds[1]);
    uint64_t deadline_ms = fgw_loop_now_ms(fgw_loop_current()) + 5000;
    fgw_conn_set_read_deadline(pair->client_conn, deadline_ms);
    fgw_conn_set_read_deadline(pair->server_conn, deadline_ms);
    fgw_channel_init(&pair->client);
    fgw_channel_init(&pair->server);
    fgw_buf_init(&pair->first, 0);
    fgw_wait_init(&pair->done, 1);
    fgw_fiber_spawn(fgw_loop_current(), serve, pair);
    pair->fn(pair);
    fgw_channel_deinit(&pair->client);
    fgw_channel_deinit(&pair->server);
    fgw_conn_close(pair->client_conn);
    fgw_conn_close(pair->server_conn);
    fgw_buf_deinit(&pair->first);
}

static void run(void (*fn)(struct pair *pair), struct fgw_bytes secret)
{
    struct pair *pair = fgw_xcalloc(1, sizeof *pair);
    pair->client_secret = secret;
    pair->fn = fn;
    fgw_fiber_run_alone(with_pair, pair);
    fgw_xfree(pair);
}

static void open_pair(struct pair *pair, enum fgw_err want)
{
    struct fgw_bytes part = FGW_LIT("hello");
    assert_int_equal(fgw_channel_connect(&pair->client, pair->client_conn, pair->client_secret),
                     FGW_OK);
    assert_int_equal(pair->client.epoch, 7);
    assert_int_equal(pair->client.store_id[3], 0xab);
    assert_int_equal(fgw_channel_send(&pair->client, 1, &part, 1), FGW_OK);
    fgw_wait_for(&pair->done);
    assert_int_equal(pair->accepted, want);
}

/* -- good ---------------------------------------------------------------------------------------- */

static void talk(struct pair *pair)
{
    uint8_t kind;
    struct fgw_bytes payload;
    open_pair(pair, FGW_OK);
    assert_int_equal(pair->kind, 1);
    assert_true(fgw_bytes_eq_str(fgw_buf_bytes(&pair->first), "hello"));
    for (unsigned i = 0; i < 50; i++) {
        struct fgw_bytes parts[] = {FGW_LIT("a"), fgw_bytes(NULL, 0), FGW_LIT("bc")};
        assert_int_equal(fgw_channel_send(&pair->server, (uint8_t)(100 + i), parts, i % 4), FGW_OK);
        assert_int_equal(fgw_channel_send(&pair->client, 9, parts, 3), FGW_OK);
        assert_true(fgw_channel_pending(&pair->server));
        assert_int_equal(fgw_channel_receive(&pair->client, &kind, &payload), FGW_OK);
        assert_int_equal(kind, 100 + i);
        assert_int_equal(payload.len, i % 4 == 0 ? 0 : i % 4 == 3 ? 3 : 1);
        assert_int_equal(fgw_channel_receive(&pair->server, &kind, &payload), FGW_OK);
        assert_true(fgw_bytes_eq_str(payload, "abc"));
        assert_false(fgw_channel_pending(&pair->server));
    }
    fgw_conn_break(pair->client_conn);
    assert_true(fgw_channel_pending(&pair->server)); /* its end counts */
    assert_int_equal(fgw_channel_receive(&pair->server, &kind, &payload), FGW_ERR_END);
}

static void frames_go_both_ways(void **state)
{
    (void)state;
    run(talk, FIRST);
}

static void any_secret_of_the_list_opens(void **state)
{
    (void)state;
    run(talk, SECOND);
}

static void expect_refusal(struct pair *pair)
{
    open_pair(pair, FGW_ERR_ACCESS_DENIED);
}

static void another_secret_does_not(void **state)
{
    (void)state;
    run(expect_refusal, FGW_LIT("no secret of this cluster, but long"));
}

struct big_send {
    struct pair *pair;
    struct fgw_bytes bytes;
};

static void send_big(void *arg)
{
    struct big_send *big = arg;
    assert_int_equal(fgw_channel_send(&big->pair->client, 4, &big->bytes, 1), FGW_OK);
}

struct seen {
    struct fgw_buf bytes;
    unsigned pieces;
};

static void see(void *context, uint8_t kind, size_t at, struct fgw_bytes bytes, size_t length)
{
    struct seen *seen = context;
    assert_int_equal(kind, 4);
    assert_int_equal(at, seen->bytes.len);
    assert_int_equal(length, FGW_BLOCKAPI_PAYLOAD_MAX);
    assert_true(bytes.len > 0 && bytes.len <= length - at);
    assert_int_equal(fgw_buf_append(&seen->bytes, bytes), FGW_OK);
    seen->pieces++;
}

static void largest_frame(struct pair *pair)
{
    static uint8_t bytes[FGW_BLOCKAPI_PAYLOAD_MAX];
    struct big_send big = {pair, {bytes, sizeof bytes}};
    struct seen seen = {.pieces = 0};
    uint8_t kind;
    struct fgw_bytes payload;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i / 253);
    }
    fgw_buf_init(&seen.bytes, sizeof bytes);
    open_pair(pair, FGW_OK);
    fgw_channel_set_tap(&pair->server, see, &seen);
    fgw_fiber_spawn(fgw_loop_current(), send_big, &big);
    assert_int_equal(fgw_channel_receive(&pair->server, &kind, &payload), FGW_OK);
    assert_int_equal(payload.len, sizeof bytes);
    assert_memory_equal(payload.ptr, bytes, sizeof bytes);
    assert_int_equal(seen.bytes.len, sizeof bytes);
    assert_memory_equal(seen.bytes.ptr, bytes, sizeof bytes);
    assert_true(seen.pieces > 1);
    fgw_channel_set_tap(&pair->server, NULL, NULL);
    fgw_buf_deinit(&seen.bytes);
}

static void the_largest_frame_passes(void **state)
{
    (void)state;
    run(largest_frame, FIRST);
}

enum { IN_FILE = 300000, FILE_START = 4096 };

struct file_send {
    struct pair *pair;
    const uint8_t *bytes;
    int fd;
    struct fgw_wait done;
};

/* Begun twice, as when the bytes were not in memory the first time; in pieces; between other frames. */
static void send_file(void *arg)
{
    struct file_send *send = arg;
    struct fgw_channel *channel = &send->pair->client;
    struct fgw_bytes part = FGW_LIT("after");
    fgw_channel_file_begin(channel, 5, FGW_LIT("not this"), IN_FILE);
    fgw_channel_file_bytes(channel, fgw_bytes(send->bytes, 1000));
    fgw_channel_file_begin(channel, 6, FGW_LIT("head"), IN_FILE);
    fgw_channel_file_bytes(channel, fgw_bytes(send->bytes, 1));
    fgw_channel_file_bytes(channel, fgw_bytes(send->bytes + 1, IN_FILE - 1));
    assert_int_equal(fgw_channel_send_file(channel, send->fd, FILE_START), FGW_OK);
    assert_int_equal(fgw_channel_send(channel, 7, &part, 1), FGW_OK);
    fgw_wait_signal(&send->done);
}

/* FGW_ERR_CORRUPT: the file is changed behind the back of the tag. */
static void pass_file(struct pair *pair, enum fgw_err want)
{
    uint8_t kind;
    struct fgw_bytes payload;
    uint8_t *bytes = fgw_xmalloc(IN_FILE);
    struct file_send send = {
        .pair = pair, .bytes = bytes, .fd = memfd_create("frame", MFD_CLOEXEC)};
    assert_true(send.fd >= 0);
    memset(bytes, 0x33, IN_FILE);
    bytes[IN_FILE / 2] = 7;
    assert_int_equal(pwrite(send.fd, bytes, IN_FILE, FILE_START), IN_FILE);
    if (want == FGW_ERR_CORRUPT) {
        assert_int_equal(pwrite(send.fd, "x", 1, FILE_START + IN_FILE / 2), 1);
    }
    open_pair(pair, FGW_OK);
    fgw_wait_init(&send.done, 1);
    fgw_fiber_spawn(fgw_loop_current(), send_file, &send);
    assert_int_equal(fgw_channel_receive(&pair->server, &kind, &payload), want);
    if (want == FGW_OK) {
        assert_int_equal(kind, 6);
        assert_int_equal(payload.len, 4 + IN_FILE);
        assert_memory_equal(payload.ptr, "head", 4);
        assert_memory_equal(payload.ptr + 4, bytes, IN_FILE);
        assert_int_equal(fgw_channel_receive(&pair->server, &kind, &payload), FGW_OK);
        assert_true(fgw_bytes_eq_str(payload, "after"));
    }
    fgw_wait_for(&send.done);
    (void)close(send.fd);
    fgw_xfree(bytes);
}

static void file_passes(struct pair *pair)
{
    pass_file(pair, FGW_OK);
}

static void changed_file(struct pair *pair)
{
    pass_file(pair, FGW_ERR_CORRUPT);
}

static void frames_end_in_bytes_of_a_file(void **state)
{
    (void)state;
    run(file_passes, FIRST);
    run(changed_file, FIRST);
}

/* -- hostile ------------------------------------------------------------------------------------- */

/* Puts a frame of the client, changed, on the wire: its bytes are taken from a channel that writes
 * into a second pair. */
static void capture(struct pair *pair, uint8_t *out, size_t size)
{
    int fds[2];
    struct fgw_bytes part = FGW_LIT("payload");
    struct fgw_conn *real = pair->client.conn;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    pair->client.conn = fgw_conn_new(fgw_loop_current(), fds[0]);
    assert_int_equal(fgw_channel_send(&pair->client, 2, &part, 1), FGW_OK);
    assert_int_equal(read(fds[1], out, size), (ssize_t)size);
    fgw_conn_close(pair->client.conn);
    (void)close(fds[1]);
    pair->client.conn = real;
}

enum { FRAME = 8 + 7 + 16 };

static enum fgw_err deliver(struct pair *pair, const uint8_t *frame, size_t size)
{
    uint8_t kind;
    struct fgw_bytes payload;
    assert_int_equal(fgw_conn_write(pair->client_conn, fgw_bytes(frame, size)), FGW_OK);
    return fgw_channel_receive(&pair->server, &kind, &payload);
}

static size_t flipped_byte;

static void flip(struct pair *pair)
{
    uint8_t frame[FRAME];
    open_pair(pair, FGW_OK);
    capture(pair, frame, sizeof frame);
    frame[flipped_byte] ^= 1;
    enum fgw_err err = deliver(pair, frame, sizeof frame);
    assert_true(err != FGW_OK);
}

static void every_byte_counts(void **state)
{
    (void)state;
    /* a longer length (byte 0) waits for bytes that never come: tested below */
    for (flipped_byte = 1; flipped_byte < FRAME; flipped_byte++) {
        run(flip, FIRST);
    }
}

static void replay(struct pair *pair)
{
    uint8_t frame[FRAME];
    open_pair(pair, FGW_OK);
    capture(pair, frame, sizeof frame);
    assert_int_equal(deliver(pair, frame, sizeof frame), FGW_OK);
    assert_int_equal(deliver(pair, frame, sizeof frame), FGW_ERR_CORRUPT);
}

static void lose_one(struct pair *pair)
{
    uint8_t frame[FRAME];
    open_pair(pair, FGW_OK);
    capture(pair, frame, sizeof frame); /* lost */
    capture(pair, frame, sizeof frame);
    assert_int_equal(deliver(pair, frame, sizeof frame), FGW_ERR_CORRUPT);
}

static void reflect(struct pair *pair)
{
    uint8_t frame[FRAME];
    uint8_t kind;
    struct fgw_bytes payload;
    open_pair(pair, FGW_OK);
    capture(pair, frame, sizeof frame);
    assert_int_equal(fgw_conn_write(pair->server_conn, fgw_bytes(frame, sizeof frame)), FGW_OK);
    assert_int_equal(fgw_channel_receive(&pair->client, &kind, &payload), FGW_ERR_CORRUPT);
}

static void frames_cannot_be_replayed_dropped_or_sent_back(void **state)
{
    (void)state;
    run(replay, FIRST);
    run(lose_one, FIRST);
    run(reflect, FIRST);
}

static void too_long(struct pair *pair)
{
    uint8_t head[8] = {0};
    open_pair(pair, FGW_OK);
    fgw_put_u32le(head, FGW_BLOCKAPI_PAYLOAD_MAX + 1);
    assert_int_equal(deliver(pair, head, sizeof head), FGW_ERR_PARSE);
    assert_true(pair->server.input_cap < 64 * 1024); /* before memory is taken */
}

static void a_length_above_the_bound_is_refused(void **state)
{
    (void)state;
    run(too_long, FIRST);
}

static void cut(struct pair *pair)
{
    uint8_t frame[FRAME];
    uint8_t kind;
    struct fgw_bytes payload;
    open_pair(pair, FGW_OK);
    capture(pair, frame, sizeof frame);
    assert_int_equal(fgw_conn_write(pair->client_conn, fgw_bytes(frame, FRAME - 1)), FGW_OK);
    fgw_conn_break(pair->client_conn);
    assert_int_equal(fgw_channel_receive(&pair->server, &kind, &payload), FGW_ERR_CLIENT_GONE);
}

static void one_byte_at_a_time(struct pair *pair)
{
    uint8_t frame[FRAME];
    uint8_t kind;
    struct fgw_bytes payload;
    open_pair(pair, FGW_OK);
    capture(pair, frame, sizeof frame);
    for (size_t i = 0; i < sizeof frame; i++) {
        assert_int_equal(fgw_conn_write(pair->client_conn, fgw_bytes(frame + i, 1)), FGW_OK);
    }
    assert_int_equal(fgw_channel_receive(&pair->server, &kind, &payload), FGW_OK);
    assert_true(fgw_bytes_eq_str(payload, "payload"));
}

static void frames_in_pieces(void **state)
{
    (void)state;
    run(cut, FIRST);
    run(one_byte_at_a_time, FIRST);
}

static void speak_http(struct pair *pair)
{
    static const char TEXT[] = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
    assert_int_equal(fgw_conn_write(pair->client_conn, fgw_bytes(TEXT, sizeof TEXT - 1)), FGW_OK);
    fgw_wait_for(&pair->done);
    assert_int_equal(pair->accepted, FGW_ERR_PARSE);
}

static void ask_for_version_9(struct pair *pair)
{
    uint8_t hello[40] = "FGWC\x09\x09";
    uint8_t answer[64];
    assert_int_equal(fgw_conn_write(pair->client_conn, fgw_bytes(hello, sizeof hello)), FGW_OK);
    fgw_wait_for(&pair->done);
    assert_int_equal(pair->accepted, FGW_ERR_NEWER_VERSION);
    assert_int_equal(fgw_conn_read_exact(pair->client_conn, answer, sizeof answer), FGW_OK);
    assert_int_equal(answer[4], 0);
}

/* A server of a release that speaks 1 and 2 meets one that speaks 2 and 3. */
static void ask_for_versions_2_and_3(struct pair *pair)
{
    uint8_t hello[40] = "FGWC\x02\x03";
    uint8_t answer[64];
    assert_int_equal(fgw_conn_write(pair->client_conn, fgw_bytes(hello, sizeof hello)), FGW_OK);
    assert_int_equal(fgw_conn_read_exact(pair->client_conn, answer, sizeof answer), FGW_OK);
    assert_int_equal(answer[4], 2);
    fgw_conn_break(pair->client_conn);
    fgw_wait_for(&pair->done);
}

static void the_highest_common_version_is_spoken(void **state)
{
    (void)state;
    assert_int_equal(setenv("FGW_TEST_BLOCKAPI_VERSIONS", "12", 1), 0);
    run(ask_for_versions_2_and_3, FIRST);
    assert_int_equal(unsetenv("FGW_TEST_BLOCKAPI_VERSIONS"), 0);
}

static void foreign_openings_are_refused(void **state)
{
    (void)state;
    run(speak_http, FIRST);
    run(ask_for_version_9, FIRST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_go_both_ways),
        cmocka_unit_test(any_secret_of_the_list_opens),
        cmocka_unit_test(another_secret_does_not),
        cmocka_unit_test(the_largest_frame_passes),
        cmocka_unit_test(frames_end_in_bytes_of_a_file),
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(frames_cannot_be_replayed_dropped_or_sent_back),
        cmocka_unit_test(a_length_above_the_bound_is_refused),
        cmocka_unit_test(frames_in_pieces),
        cmocka_unit_test(foreign_openings_are_refused),
        cmocka_unit_test(the_highest_common_version_is_spoken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
