/* load.c: a closed-loop load generator for S3 servers: one thread, N keep-alive connections, each
 * with one request under way. Requests are presigned and built before the clock starts, so that the
 * generator costs little beside the server it measures.
 *
 *   fgw-load --endpoint 127.0.0.1:8078 --access-key A --secret-key S --op put --size 4096
 *            --connections 32 --seconds 5 [--keys 1000] [--bucket bench] [--pid SERVER] [--json]
 *
 * Operations: put, get, head, list (a page of --query), delete, create-bucket, versioning (switches it
 * on), plain (unsigned GET of /--query at any server). put writes --keys keys from k000000 (--first F:
 * from the F-th; --groups G: gNNNN/kNNNNNN), get and head read them, so run put first. Bounded by --seconds and by
 * --requests; sends to the one endpoint named. Prints one line, or one JSON object, with operations
 * and megabytes a second, latency percentiles, errors, and with --pid the server's CPU per operation
 * and resident memory.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "sigv4/sign.h"

enum {
    KEYS_MAX = 200000,
    CONNECTIONS_MAX = 4096,
    HISTOGRAM = 64 * 16,
    READ_SIZE = 256 * 1024,
    EXPIRES_S = 86400,
    STAMP_EVERY = 64 * 1024
};

struct options {
    const char *host;
    unsigned port;
    const char *access_key, *secret_key, *region, *bucket, *op, *query;
    size_t size;
    unsigned connections, keys, first, groups;
    double seconds;
    uint64_t requests_max;
    long pid;
    bool json;
};

struct request {
    struct fgw_bytes head;
    bool has_body;
};

struct connection {
    int fd;
    const struct request *request;
    size_t sent; /* of head and body together */
    uint64_t started_ns;
    bool head_done;
    bool close_after;
    bool no_body;
    uint64_t body_left; /* UINT64_MAX: until chunked end */
    bool chunked;
    unsigned status;
    struct fgw_buf in;
    uint8_t *body; /* its own copy, stamped anew for each request: no two bodies share a block */
};

struct load {
    struct options options;
    struct fgw_arena arena;
    struct request *requests;
    uint64_t next_request;
    struct fgw_bytes body;
    struct connection *connections;
    int epoll;
    uint64_t done, errors, bytes, started;
    uint64_t histogram[HISTOGRAM]; /* 16 steps an octave, in us */
    uint64_t stop_ns;
    bool stamps; /* bodies differ */
    char first_error[200];
};

static void die(const char *what)
{
    (void)fprintf(stderr, "fgw-load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* -- histogram --------------------------------------------------------------------------------- */

static size_t slot_of(uint64_t us)
{
    if (us < 16) {
        return (size_t)us;
    }
    unsigned octave = 63U - (unsigned)__builtin_clzll(us);
    size_t slot = (size_t)(octave - 3) * 16 + (size_t)(us >> (octave - 4) & 15);
    return slot < HISTOGRAM ? slot : HISTOGRAM - 1;
}

static uint64_t value_of(size_t slot)
{
    if (slot < 16) {
        return slot;
    }
    unsigned octave = (unsigned)(slot / 16) + 3;
    return (UINT64_C(16) + slot % 16) << (octave - 4);
}

static uint64_t percentile(const struct load *load, double share)
{
    uint64_t want = (uint64_t)((double)load->done * share);
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM; i++) {
        seen += load->histogram[i];
        if (seen > want) {
            return value_of(i);
        }
    }
    return 0;
}

/* -- requests ---------------------------------------------------------------------------------- */

static const char ENABLE_VERSIONING[] =
    "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    "<Status>Enabled</Status></VersioningConfiguration>";

static void build_request(struct load *load, unsigned slot)
{
    const struct options *o = &load->options;
    unsigned index = o->first + slot;
    struct fgw_arena *arena = &load->arena;
    char *host = fgw_arena_printf(arena, "%s:%u", o->host, o->port);
    struct fgw_sig_header host_header = {FGW_LIT("Host"), fgw_bytes_str(host)};
    bool list = strcmp(o->op, "list") == 0;
    bool put = strcmp(o->op, "put") == 0;
    bool make = strcmp(o->op, "create-bucket") == 0;
    bool set = strcmp(o->op, "versioning") == 0;
    const char *method = put || make || set             ? "PUT"
                         : strcmp(o->op, "head") == 0   ? "HEAD"
                         : strcmp(o->op, "delete") == 0 ? "DELETE"
                                                        : "GET";
    char *path = list || make || set ? fgw_arena_printf(arena, "/%s", o->bucket)
                 : o->groups > 0     ? fgw_arena_printf(arena, "/%s/g%04u/k%06u", o->bucket,
                                                        index % o->groups, index)
                                     : fgw_arena_printf(arena, "/%s/k%06u", o->bucket, index);
    struct fgw_sig_request request = {.method = fgw_bytes_str(method),
                                      .raw_path = fgw_bytes_str(path),
                                      .raw_query = list  ? fgw_bytes_str(o->query)
                                                   : set ? FGW_LIT("versioning=")
                                                         : fgw_bytes(NULL, 0),
                                      .headers = &host_header,
                                      .header_count = 1};
    struct fgw_sig_signer signer = {.access_key = fgw_bytes_str(o->access_key),
                                    .secret = fgw_bytes_str(o->secret_key),
                                    .region = fgw_bytes_str(o->region),
                                    .service = FGW_LIT("s3"),
                                    .now_ms = fgw_clock_wall_ms()};
    struct fgw_bytes query = {NULL, 0};
    if (strcmp(o->op, "plain") == 0) {
        path = fgw_arena_printf(arena, "/%s", o->query);
    } else {
        FGW_CHECK(fgw_sig_presign(arena, &signer, &request, EXPIRES_S, &query) == FGW_OK);
    }
    char *head = fgw_arena_printf(arena, "%s %s%s%.*s HTTP/1.1\r\nHost: %s\r\n", method, path,
                                  query.len > 0 ? "?" : "", FGW_FMT(query), host);
    if (put || make || set) {
        head = fgw_arena_printf(arena, "%sContent-Length: %zu\r\n", head, make ? 0 : o->size);
    }
    head = fgw_arena_printf(arena, "%s\r\n", head);
    load->requests[slot] = (struct request){fgw_bytes_str(head), put || set};
}

/* -- connections ------------------------------------------------------------------------------- */

static void connect_one(struct load *load, struct connection *c)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)load->options.port)};
    if (inet_pton(AF_INET, load->options.host, &address.sin_addr) != 1) {
        errno = EINVAL;
        die(load->options.host);
    }
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        die("connect");
    }
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)fcntl(c->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, c->fd, &event) != 0) {
        die("epoll_ctl");
    }
}

static void want_write(struct load *load, struct connection *c, bool on)
{
    struct epoll_event event = {.events = EPOLLIN | (on ? EPOLLOUT : 0U), .data.ptr = c};
    (void)epoll_ctl(load->epoll, EPOLL_CTL_MOD, c->fd, &event);
}

static void send_more(struct load *load, struct connection *c)
{
    size_t body = c->request->has_body ? load->body.len : 0;
    size_t total = c->request->head.len + body;
    while (c->sent < total) {
        struct iovec iov[2];
        int count = 0;
        size_t in_body = c->sent > c->request->head.len ? c->sent - c->request->head.len : 0;
        if (c->sent < c->request->head.len) {
            iov[count].iov_base = (void *)(uintptr_t)(c->request->head.ptr + c->sent);
            iov[count++].iov_len = c->request->head.len - c->sent;
        }
        if (body > in_body) {
            iov[count].iov_base = c->body + in_body;
            iov[count++].iov_len = body - in_body;
        }
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)count};
        ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EAGAIN) {
                want_write(load, c, true);
                return;
            }
            return; /* the read side sees why */
        }
        c->sent += (size_t)n;
    }
}

static void stamp_body(struct load *load, struct connection *c)
{
    for (size_t at = 0; at + sizeof load->started <= load->body.len; at += STAMP_EVERY) {
        memcpy(c->body + at, &load->started, sizeof load->started);
    }
}

static void start_request(struct load *load, struct connection *c)
{
    if (load->options.requests_max != 0 && load->started >= load->options.requests_max) {
        c->request = NULL;
        return;
    }
    load->started++;
    c->request = &load->requests[load->next_request++ % load->options.keys];
    c->sent = 0;
    c->head_done = false;
    if (c->request->has_body && load->stamps) {
        stamp_body(load, c);
    }
    c->started_ns = fgw_clock_boot_ns();
    fgw_buf_clear(&c->in);
    send_more(load, c);
}

static void note_error(struct load *load, const char *what, struct fgw_bytes detail)
{
    load->errors++;
    if (load->first_error[0] == '\0') {
        (void)snprintf(load->first_error, sizeof load->first_error, "%s: %.*s", what,
                       FGW_FMT(fgw_bytes_sub(detail, 0, 160)));
    }
}

static void finish_request(struct load *load, struct connection *c)
{
    uint64_t us = (fgw_clock_boot_ns() - c->started_ns) / 1000;
    load->done++;
    load->histogram[slot_of(us)]++;
    if (c->status < 200 || c->status > 299) {
        note_error(load, "status", fgw_buf_bytes(&c->in));
    } else if (c->request->has_body) {
        load->bytes += load->body.len;
    }
    if (c->close_after) {
        (void)close(c->fd);
        connect_one(load, c);
    }
    start_request(load, c);
}

static void parse_header(struct connection *c, struct fgw_bytes line)
{
    size_t colon = fgw_bytes_find_byte(line, ':');
    if (colon == SIZE_MAX) {
        return;
    }
    struct fgw_bytes name = fgw_bytes_sub(line, 0, colon);
    struct fgw_bytes value = fgw_bytes_trim(fgw_bytes_sub(line, colon + 1, SIZE_MAX));
    if (fgw_bytes_ieq_str(name, "content-length")) {
        if (fgw_bytes_to_u64(value, &c->body_left) != FGW_OK) {
            c->body_left = 0;
        }
    } else if (fgw_bytes_ieq_str(name, "transfer-encoding")) {
        c->chunked = true;
    } else if (fgw_bytes_ieq_str(name, "connection") && fgw_bytes_ieq_str(value, "close")) {
        c->close_after = true;
    }
}

/* True when the head is complete; it is taken off the buffer. */
static bool parse_head(struct connection *c)
{
    struct fgw_bytes all = fgw_buf_bytes(&c->in);
    size_t end = fgw_bytes_find(all, FGW_LIT("\r\n\r\n"), 0);
    if (end == SIZE_MAX) {
        return false;
    }
    struct fgw_bytes rest = fgw_bytes_sub(all, 0, end);
    struct fgw_bytes line;
    c->body_left = 0;
    c->chunked = false;
    c->close_after = false;
    uint64_t status;
    bool known = fgw_bytes_to_u64(fgw_bytes_sub(all, 9, 3), &status) == FGW_OK;
    c->status = known ? (unsigned)status : 0;
    while (fgw_bytes_split(&rest, '\n', &line)) {
        if (line.len > 0 && line.ptr[line.len - 1] == '\r') {
            line.len--;
        }
        parse_header(c, line);
    }
    c->no_body = c->status == 204 || c->status == 304 || c->request->head.ptr[0] == 'H';
    fgw_buf_consume(&c->in, end + 4);
    c->head_done = true;
    return true;
}

/* True when the body is complete. */
static bool take_body(struct load *load, struct connection *c)
{
    if (c->no_body) {
        return true;
    }
    if (c->chunked) {
        load->bytes += c->in.len;
        bool end = fgw_bytes_ends_with(fgw_buf_bytes(&c->in), FGW_LIT("0\r\n\r\n"));
        if (!end && c->in.len > 16) {
            fgw_buf_consume(&c->in, c->in.len - 16); /* the end mark may be split */
        }
        return end;
    }
    size_t take = c->in.len < c->body_left ? c->in.len : (size_t)c->body_left;
    c->body_left -= take;
    load->bytes += take;
    if (c->status < 300) {
        fgw_buf_consume(&c->in, take);
    }
    return c->body_left == 0;
}

static void on_readable(struct load *load, struct connection *c, uint8_t *scratch)
{
    ssize_t n = recv(c->fd, scratch, READ_SIZE, 0);
    if (n < 0 && errno == EAGAIN) {
        return;
    }
    if (n <= 0) {
        note_error(load, "connection lost", fgw_bytes(NULL, 0));
        (void)close(c->fd);
        connect_one(load, c);
        start_request(load, c);
        return;
    }
    (void)fgw_buf_append(&c->in, fgw_bytes(scratch, (size_t)n));
    if (!c->head_done && !parse_head(c)) {
        return;
    }
    if (take_body(load, c)) {
        finish_request(load, c);
    }
}

/* -- server's cost ----------------------------------------------------------------------------- */

static double cpu_seconds(long pid)
{
    char path[64];
    char text[1024];
    if (pid == 0) {
        return 0;
    }
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "re");
    size_t len = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    if (file != NULL) {
        (void)fclose(file);
    }
    text[len] = '\0';
    char *at = strrchr(text, ')');
    unsigned long user = 0;
    unsigned long system = 0;
    if (at == NULL || sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                             &system) != 2) {
        return 0;
    }
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double resident_mb(long pid)
{
    char path[64];
    unsigned long size = 0;
    unsigned long resident = 0;
    if (pid == 0) {
        return 0;
    }
    (void)snprintf(path, sizeof path, "/proc/%ld/statm", pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%lu %lu", &size, &resident) != 2) {
            resident = 0;
        }
        (void)fclose(file);
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void report(const struct load *load, double elapsed_s, double cpu_s)
{
    const struct options *o = &load->options;
    double ops = (double)load->done / elapsed_s;
    double mbs = (double)load->bytes / elapsed_s / 1e6;
    double cpu_us = load->done == 0 ? 0 : cpu_s * 1e6 / (double)load->done;
    if (o->json) {
        (void)printf("{\"op\":\"%s\",\"size\":%zu,\"connections\":%u,\"requests\":%" PRIu64
                     ",\"errors\":%" PRIu64 ",\"ops_s\":%.1f,\"mb_s\":%.2f,\"p50_us\":%" PRIu64
                     ",\"p99_us\":%" PRIu64 ",\"p999_us\":%" PRIu64
                     ",\"server_cpu_us\":%.2f,\"server_rss_mb\":%.1f}\n",
                     o->op, o->size, o->connections, load->done, load->errors, ops, mbs,
                     percentile(load, 0.5), percentile(load, 0.99), percentile(load, 0.999), cpu_us,
                     resident_mb(o->pid));
    } else {
        (void)printf("%-6s %9zu B  %4u conn  %10.1f op/s  %9.2f MB/s  p50 %" PRIu64 "  p99 %" PRIu64
                     "  p99.9 %" PRIu64 " us  cpu %.1f us/op  rss %.1f MB  errors %" PRIu64 "\n",
                     o->op, o->size, o->connections, ops, mbs, percentile(load, 0.5),
                     percentile(load, 0.99), percentile(load, 0.999), cpu_us, resident_mb(o->pid),
                     load->errors);
    }
    if (load->errors > 0) {
        (void)fprintf(stderr, "fgw-load: first error: %s\n", load->first_error);
    }
}

static void run(struct load *load)
{
    uint8_t *scratch = fgw_xmalloc(READ_SIZE);
    struct epoll_event events[256];
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < load->options.connections; i++) {
        fgw_buf_init(&load->connections[i].in, 0);
        load->connections[i].body = fgw_xmalloc(load->body.len + 1);
        memcpy(load->connections[i].body, load->body.ptr, load->body.len);
        connect_one(load, &load->connections[i]);
    }
    double cpu_before = cpu_seconds(load->options.pid);
    uint64_t begin_ns = fgw_clock_boot_ns();
    uint64_t stop_ns = begin_ns + (uint64_t)(load->options.seconds * 1e9);
    for (unsigned i = 0; i < load->options.connections; i++) {
        start_request(load, &load->connections[i]);
    }
    uint64_t now_ns = begin_ns;
    while (now_ns < stop_ns &&
           (load->options.requests_max == 0 || load->done < load->options.requests_max)) {
        int count = epoll_wait(load->epoll, events, 256, 100);
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (c->request == NULL) {
                continue;
            }
            if (events[i].events & EPOLLOUT) {
                want_write(load, c, false);
                send_more(load, c);
            }
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
                on_readable(load, c, scratch);
            }
        }
        now_ns = fgw_clock_boot_ns();
    }
    report(load, (double)(now_ns - begin_ns) / 1e9, cpu_seconds(load->options.pid) - cpu_before);
    fgw_xfree(scratch);
}

static void parse_endpoint(struct options *o, char *text)
{
    char *colon = strrchr(text, ':');
    if (colon == NULL) {
        errno = EINVAL;
        die(text);
    }
    *colon = '\0';
    o->host = text;
    o->port = (unsigned)strtoul(colon + 1, NULL, 10);
}

static const struct option LONG[] = {{"endpoint", 1, NULL, 'e'},
                                     {"access-key", 1, NULL, 'a'},
                                     {"secret-key", 1, NULL, 's'},
                                     {"region", 1, NULL, 'r'},
                                     {"bucket", 1, NULL, 'b'},
                                     {"op", 1, NULL, 'o'},
                                     {"size", 1, NULL, 'z'},
                                     {"connections", 1, NULL, 'c'},
                                     {"keys", 1, NULL, 'k'},
                                     {"seconds", 1, NULL, 't'},
                                     {"requests", 1, NULL, 'n'},
                                     {"pid", 1, NULL, 'p'},
                                     {"query", 1, NULL, 'q'},
                                     {"json", 0, NULL, 'j'},
                                     {"groups", 1, NULL, 'g'},
                                     {"first", 1, NULL, 'f'},
                                     {NULL, 0, NULL, 0}};

static void check_options(const struct options *o)
{
    if (o->host == NULL || o->connections == 0 || o->connections > CONNECTIONS_MAX ||
        o->keys == 0 || o->keys > KEYS_MAX || o->seconds <= 0 || o->seconds > 3600) {
        (void)fprintf(stderr,
                      "fgw-load: --endpoint HOST:PORT is needed; 1..%d connections, 1..%d "
                      "keys, up to 3600 seconds\n",
                      CONNECTIONS_MAX, KEYS_MAX);
        exit(2);
    }
}

static void parse_options(struct options *o, int argc, char **argv)
{
    *o = (struct options){.access_key = "",
                          .secret_key = "",
                          .region = "us-east-1",
                          .bucket = "bench",
                          .op = "get",
                          .query = "list-type=2",
                          .size = 4096,
                          .connections = 32,
                          .keys = 1000,
                          .seconds = 5};
    int c;
    while ((c = getopt_long(argc, argv, "", LONG, NULL)) != -1) {
        switch (c) {
        case 'e':
            parse_endpoint(o, optarg);
            break;
        case 'a':
            o->access_key = optarg;
            break;
        case 's':
            o->secret_key = optarg;
            break;
        case 'r':
            o->region = optarg;
            break;
        case 'b':
            o->bucket = optarg;
            break;
        case 'o':
            o->op = optarg;
            break;
        case 'z':
            o->size = strtoul(optarg, NULL, 10);
            break;
        case 'c':
            o->connections = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'k':
            o->keys = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 't':
            o->seconds = strtod(optarg, NULL);
            break;
        case 'n':
            o->requests_max = strtoul(optarg, NULL, 10);
            break;
        case 'p':
            o->pid = strtol(optarg, NULL, 10);
            break;
        case 'q':
            o->query = optarg;
            break;
        case 'g':
            o->groups = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'f':
            o->first = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'j':
            o->json = true;
            break;
        default:
            exit(2);
        }
    }
    check_options(o);
}

int main(int argc, char **argv)
{
    static struct load load;
    parse_options(&load.options, argc, argv);
    fgw_arena_init(&load.arena, 1 << 20);
    load.requests = fgw_xcalloc(load.options.keys, sizeof *load.requests);
    load.connections = fgw_xcalloc(load.options.connections, sizeof *load.connections);
    load.stamps = strcmp(load.options.op, "versioning") != 0;
    if (!load.stamps) {
        load.options.size = sizeof ENABLE_VERSIONING - 1;
    }
    uint8_t *body = fgw_xmalloc(load.options.size + 1);
    fgw_rng_fill(body, load.options.size);
    if (!load.stamps) {
        memcpy(body, ENABLE_VERSIONING, load.options.size);
    }
    load.body = fgw_bytes(body, load.options.size);
    for (unsigned i = 0; i < load.options.keys; i++) {
        build_request(&load, i);
    }
    run(&load);
    return load.errors > 0;
}
