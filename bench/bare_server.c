/* bare_server.c: what libuv and llhttp cost by themselves: the server to measure FGW's speed against
 * (same machine, same run, only ratios count). It checks nothing and knows no object store: each
 * GET is answered with the same bytes.
 *
 * usage: fgw-bare-server PORT [memory|sendfile|sendfile-crc] [--threads N] [--size BYTES]
 *                        [--file PATH]
 * memory        BYTES (4096) from memory, head and body in one writev
 * sendfile      BYTES of PATH by sendfile; a file of several times BYTES is gone through in turn, so
 *               that processor caches do not hold what a store with many objects would fetch
 * sendfile-crc  the same, checking CRC32C of the mapped bytes first
 * The main thread accepts and deals connections out in turn; each worker is one libuv loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <llhttp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uv.h>

#include "base/bytes.h"

enum { READ_SIZE = 16 * 1024, BODIES_MAX = 1024, QUEUE_SIZE = 4096 };
enum mode { MODE_MEMORY, MODE_SENDFILE, MODE_SENDFILE_CRC };

struct worker {
    uv_loop_t loop;
    uv_async_t arrival;
    pthread_t thread;
    size_t next_body;
    struct {
        pthread_mutex_t mutex;
        int fds[QUEUE_SIZE];
        unsigned count;
    } queue;
    char input[READ_SIZE];
};

struct conn {
    uv_poll_t poll;
    llhttp_t parser;
    struct worker *worker;
    int fd;
    bool writing;
    unsigned answers; /* still to be sent */
    size_t head_left;
    size_t body_left;
    size_t body; /* which one of the file */
};

static struct {
    enum mode mode;
    size_t size;
    int file;
    const uint8_t *bytes;
    size_t bodies;
    uint32_t crcs[BODIES_MAX];
    char head[256];
    size_t head_len;
} answer = {.size = 4096, .file = -1};

static llhttp_settings_t settings;

static void on_ready(uv_poll_t *poll, int status, int events);

static void free_conn(uv_handle_t *handle)
{
    fgw_xfree(handle->data);
}

static void close_conn(struct conn *conn)
{
    (void)uv_poll_stop(&conn->poll);
    (void)close(conn->fd);
    uv_close((uv_handle_t *)&conn->poll, free_conn);
}

static int on_message_complete(llhttp_t *parser)
{
    struct conn *conn = parser->data;
    conn->answers++;
    return 0;
}

static ssize_t send_head_and_memory(struct conn *conn)
{
    struct iovec iov[2] = {
        {answer.head + answer.head_len - conn->head_left, conn->head_left},
        {(void *)(uintptr_t)(answer.bytes + answer.size - conn->body_left),
         answer.mode == MODE_MEMORY ? conn->body_left : 0},
    };
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t sent =
        sendmsg(conn->fd, &message, MSG_NOSIGNAL | (answer.mode == MODE_MEMORY ? 0 : MSG_MORE));
    if (sent > 0) {
        size_t of_head = (size_t)sent < conn->head_left ? (size_t)sent : conn->head_left;
        conn->head_left -= of_head;
        conn->body_left -= (size_t)sent - of_head;
    }
    return sent;
}

static ssize_t send_file(struct conn *conn)
{
    off_t at = (off_t)((conn->body + 1) * answer.size - conn->body_left);
    ssize_t sent = sendfile(conn->fd, answer.file, &at, conn->body_left);
    if (sent > 0) {
        conn->body_left -= (size_t)sent;
    }
    return sent;
}

static uint32_t crc_of(size_t body)
{
    const uint8_t *bytes = answer.bytes + body * answer.size;
    return crc32_iscsi((unsigned char *)(uintptr_t)bytes, (int)answer.size, 0);
}

static void begin_answer(struct conn *conn)
{
    conn->answers--;
    conn->writing = true;
    conn->head_left = answer.head_len;
    conn->body_left = answer.size;
    conn->body = answer.bodies > 1 ? conn->worker->next_body++ % answer.bodies : 0;
    if (answer.mode == MODE_SENDFILE_CRC && crc_of(conn->body) != answer.crcs[conn->body]) {
        abort();
    }
}

/* False when the connection is gone. */
static bool send_answers(struct conn *conn)
{
    while (conn->writing || conn->answers > 0) {
        if (!conn->writing) {
            begin_answer(conn);
        }
        while (conn->head_left + conn->body_left > 0) {
            ssize_t sent = conn->head_left > 0 || answer.mode == MODE_MEMORY
                               ? send_head_and_memory(conn)
                               : send_file(conn);
            if (sent < 0 && errno == EAGAIN) {
                (void)uv_poll_start(&conn->poll, UV_WRITABLE, on_ready);
                return true;
            }
            if (sent <= 0) {
                close_conn(conn);
                return false;
            }
        }
        conn->writing = false;
    }
    return true;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct conn *conn = poll->data;
    if (status < 0) {
        close_conn(conn);
        return;
    }
    if ((events & UV_WRITABLE) != 0) {
        if (send_answers(conn) && !conn->writing) {
            (void)uv_poll_start(&conn->poll, UV_READABLE, on_ready);
        }
        return;
    }
    ssize_t got = read(conn->fd, conn->worker->input, READ_SIZE);
    if (got <= 0 || llhttp_execute(&conn->parser, conn->worker->input, (size_t)got) != HPE_OK) {
        close_conn(conn);
        return;
    }
    (void)send_answers(conn);
}

static void add_conn(struct worker *worker, int fd)
{
    int on = 1;
    struct conn *conn = fgw_xcalloc(1, sizeof *conn);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    conn->worker = worker;
    conn->fd = fd;
    conn->poll.data = conn;
    llhttp_init(&conn->parser, HTTP_REQUEST, &settings);
    conn->parser.data = conn;
    (void)uv_poll_init(&worker->loop, &conn->poll, fd);
    (void)uv_poll_start(&conn->poll, UV_READABLE, on_ready);
}

static void on_arrival(uv_async_t *async)
{
    struct worker *worker = async->data;
    (void)pthread_mutex_lock(&worker->queue.mutex);
    for (unsigned i = 0; i < worker->queue.count; i++) {
        add_conn(worker, worker->queue.fds[i]);
    }
    worker->queue.count = 0;
    (void)pthread_mutex_unlock(&worker->queue.mutex);
}

static void *run_worker(void *arg)
{
    struct worker *worker = arg;
    (void)uv_run(&worker->loop, UV_RUN_DEFAULT);
    return NULL;
}

static struct worker *start_workers(unsigned count)
{
    struct worker *workers = fgw_xcalloc(count, sizeof *workers);
    for (unsigned i = 0; i < count; i++) {
        (void)uv_loop_init(&workers[i].loop);
        (void)uv_async_init(&workers[i].loop, &workers[i].arrival, on_arrival);
        workers[i].arrival.data = &workers[i];
        (void)pthread_mutex_init(&workers[i].queue.mutex, NULL);
        (void)pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]);
    }
    return workers;
}

static int listen_on(uint16_t port)
{
    int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1024) != 0) {
        perror("listen");
        exit(1);
    }
    return fd;
}

static void prepare_answer(const char *path)
{
    answer.head_len = (size_t)snprintf(
        answer.head, sizeof answer.head,
        "HTTP/1.1 200 OK\r\nServer: bare\r\nDate: Mon, 30 Nov 2026 17:00:00 GMT\r\n"
        "Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n\r\n",
        answer.size);
    if (answer.mode == MODE_MEMORY) {
        answer.bytes = memset(fgw_xmalloc(answer.size), 'x', answer.size);
        return;
    }
    answer.file = open(path == NULL ? "" : path, O_RDONLY | O_CLOEXEC);
    off_t file_size = lseek(answer.file, 0, SEEK_END);
    answer.bodies = file_size < 0 ? 0 : (size_t)file_size / answer.size;
    answer.bodies = answer.bodies < BODIES_MAX ? answer.bodies : BODIES_MAX;
    void *map = mmap(NULL, answer.bodies * answer.size, PROT_READ, MAP_SHARED, answer.file, 0);
    if (map == MAP_FAILED) {
        (void)fprintf(stderr, "--file of at least %zu bytes is needed\n", answer.size);
        exit(2);
    }
    answer.bytes = map;
    for (size_t i = 0; i < answer.bodies; i++) {
        answer.crcs[i] = crc_of(i);
    }
}

static uint64_t number(const char *text)
{
    uint64_t value;
    if (text == NULL || fgw_bytes_to_u64(fgw_bytes_str(text), &value) != FGW_OK) {
        (void)fprintf(stderr, "a number is needed: %s\n", text == NULL ? "" : text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"memory", "sendfile", "sendfile-crc"};
    unsigned threads = 2;
    const char *path = NULL;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0) {
            threads = (unsigned)number(argv[++i]);
        } else if (strcmp(argv[i], "--size") == 0) {
            answer.size = (size_t)number(argv[++i]);
        } else if (strcmp(argv[i], "--file") == 0) {
            path = argv[++i];
        }
        for (unsigned mode = 0; i < argc && mode < 3; mode++) {
            answer.mode = strcmp(argv[i], modes[mode]) == 0 ? (enum mode)mode : answer.mode;
        }
    }
    uint16_t port = (uint16_t)number(argv[1]);
    settings.on_message_complete = on_message_complete;
    prepare_answer(path);
    (void)signal(SIGPIPE, SIG_IGN);
    int listener = listen_on(port);
    struct worker *workers = start_workers(threads);
    (void)printf("ready\n");
    (void)fflush(stdout);
    for (unsigned turn = 0;; turn++) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct worker *worker = &workers[turn % threads];
        if (fd < 0) {
            continue;
        }
        (void)pthread_mutex_lock(&worker->queue.mutex);
        if (worker->queue.count < QUEUE_SIZE) {
            worker->queue.fds[worker->queue.count++] = fd;
        } else {
            (void)close(fd);
        }
        (void)pthread_mutex_unlock(&worker->queue.mutex);
        (void)uv_async_send(&worker->arrival);
    }
}
