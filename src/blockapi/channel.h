/* channel.h: an authenticated stream of frames between two parts of a cluster: handshake, session
 * keys, frames with a tag (docs/formats/block-api.md, design/cluster.md section 4).
 *
 * Both sides prove that they know the cluster secret by the tag of their first frame over fresh
 * random bytes of the other. The channel authenticates and does not hide. Lengths are checked
 * before memory is taken. A channel belongs to one loop; one fiber sends and one receives at a
 * time. It does not own its connection.
 */
#ifndef FGW_BLOCKAPI_CHANNEL_H
#define FGW_BLOCKAPI_CHANNEL_H

#include "base/digest.h"
#include "net/conn.h"

enum {
    FGW_BLOCKAPI_ID_SIZE = 16,
    FGW_BLOCKAPI_VERSION = 2,
    FGW_BLOCKAPI_VERSION_LOWEST = 1,
    FGW_BLOCKAPI_PAYLOAD_MAX = 1024 * 1024 + 4096,
    FGW_BLOCKAPI_FIRST_MAX = 4096, /* payload of AUTH and its answer */
    FGW_BLOCKAPI_PARTS_MAX = 4,
    FGW_BLOCKAPI_FILE_HEAD_MAX = 64
};
#define FGW_BLOCKAPI_PATH "/_fgw/v1/session"
#define FGW_BLOCKAPI_PROTOCOL "fgw-block/1"

/* Sees the payload of a frame as it comes, in order, while it is still in the processor's cache: at is
 * the place of the bytes in it, length that of all of it. Nothing is proven before receive returns
 * FGW_OK. It may yield, and must not use the channel. */
typedef void fgw_channel_tap_fn(void *context, uint8_t kind, size_t at, struct fgw_bytes bytes,
                                size_t length);

struct fgw_channel {
    struct fgw_conn *conn;
    uint8_t store_id[FGW_BLOCKAPI_ID_SIZE]; /* of the server */
    uint64_t epoch;
    uint8_t version; /* that both sides speak */
    bool server;
    struct fgw_gmac send_mac;
    struct fgw_gmac receive_mac;
    uint64_t sent;
    uint64_t received;
    size_t payload_max;
    /* what came in: [start, end) is unread; grows up to one frame */
    uint8_t *input;
    size_t input_cap;
    size_t input_start;
    size_t input_end;
    size_t consume_next; /* frame handed out by the last receive */
    fgw_channel_tap_fn *tap;
    void *tap_context;
    /* a frame that ends in bytes of a file */
    uint8_t file_head[FGW_BLOCKAPI_FILE_HEAD_MAX];
    size_t file_head_len;
    size_t file_len;
};

struct fgw_channel_secrets {
    const struct fgw_bytes *items; /* first = current */
    size_t count;
};

/* Client: sends its hello, reads the server's, derives keys from `secret`. Nothing is proven yet: the
 * first frame sent proves us, the first received the server. FGW_ERR_NEWER_VERSION (no version in
 * common), FGW_ERR_PARSE (no block API), or the connection's errors. */
enum fgw_err fgw_channel_connect(struct fgw_channel *channel, struct fgw_conn *conn,
                                 struct fgw_bytes secret) FGW_MUST_CHECK;
/* Server: reads and answers the hello, reads the first frame and takes the secret that makes its tag
 * right. FGW_ERR_ACCESS_DENIED when none does. *out_kind, *out_payload: the first frame. */
enum fgw_err fgw_channel_accept(struct fgw_channel *channel, struct fgw_conn *conn,
                                const struct fgw_channel_secrets *secrets, uint8_t *out_kind,
                                struct fgw_bytes *out_payload) FGW_MUST_CHECK;
/* store_id and epoch of an accepting side are set before fgw_channel_accept. */
void fgw_channel_init(struct fgw_channel *channel);
void fgw_channel_deinit(struct fgw_channel *channel);

/* One frame, its payload in at most FGW_BLOCKAPI_PARTS_MAX parts. */
enum fgw_err fgw_channel_send(struct fgw_channel *channel, uint8_t kind,
                              const struct fgw_bytes *parts, size_t part_count) FGW_MUST_CHECK;
/* A frame whose payload is `head` (at most FGW_BLOCKAPI_FILE_HEAD_MAX - 8 bytes) and file_len bytes of a
 * file, which never come into this process's memory as a whole: begin, show the bytes for the tag in
 * order (these two on any thread, begin as often as wanted, no other send between), then send them from
 * the file. Bytes that have changed meanwhile do not pass the peer's look at the tag. */
void fgw_channel_file_begin(struct fgw_channel *channel, uint8_t kind, struct fgw_bytes head,
                            size_t file_len);
void fgw_channel_file_bytes(struct fgw_channel *channel, struct fgw_bytes bytes);
/* As fgw_conn_send_file. */
enum fgw_err fgw_channel_send_file(struct fgw_channel *channel, int fd,
                                   uint64_t offset) FGW_MUST_CHECK;
/* The next frame; the payload is valid until the next receive. FGW_ERR_END: the peer closed between
 * frames. FGW_ERR_PARSE (head, length), FGW_ERR_CORRUPT (tag): the channel is of no further use. */
enum fgw_err fgw_channel_receive(struct fgw_channel *channel, uint8_t *out_kind,
                                 struct fgw_bytes *out_payload) FGW_MUST_CHECK;
/* For the frames to come; NULL: none. */
void fgw_channel_set_tap(struct fgw_channel *channel, fgw_channel_tap_fn *tap, void *context);
/* True when bytes of a further frame have come (which may be less than the frame), or the end of the
 * connection: receive tells. */
bool fgw_channel_pending(struct fgw_channel *channel);

#endif
