/* channel.c: see channel.h. The nonce of a frame is its direction and a counter from 0: keys are
 * new for every connection, so no nonce comes twice under one key. */
#include "blockapi/channel.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"

enum {
    CLIENT_HELLO = 40,
    SERVER_HELLO = 64,
    RANDOM_SIZE = 32,
    FRAME_HEAD = 8,
    TAG = FGW_AEAD_TAG_SIZE,
    FIRST_INPUT = 16 * 1024,
    READ_STEP = 128 * 1024
};

static const uint8_t SERVER_MAGIC[4] = {'F', 'G', 'W', 'S'};
static const char KEY_INFO[] = "fgw-block/1 channel";

void fgw_channel_init(struct fgw_channel *channel)
{
    *channel = (struct fgw_channel){.payload_max = FGW_BLOCKAPI_FIRST_MAX};
}

static void drop_keys(struct fgw_channel *channel)
{
    fgw_gmac_deinit(&channel->send_mac);
    fgw_gmac_deinit(&channel->receive_mac);
}

void fgw_channel_deinit(struct fgw_channel *channel)
{
    drop_keys(channel);
    fgw_xfree(channel->input);
    channel->input = NULL;
}

static void take_keys(struct fgw_channel *channel, struct fgw_bytes secret,
                      const uint8_t hellos[CLIENT_HELLO + SERVER_HELLO])
{
    uint8_t keys[2 * FGW_AEAD_KEY_SIZE];
    fgw_hkdf_sha256(secret, fgw_bytes(hellos, CLIENT_HELLO + SERVER_HELLO),
                    fgw_bytes(KEY_INFO, sizeof KEY_INFO - 1), keys, sizeof keys);
    const uint8_t *client = keys;
    const uint8_t *server = keys + FGW_AEAD_KEY_SIZE;
    fgw_gmac_init(&channel->send_mac, channel->server ? server : client);
    fgw_gmac_init(&channel->receive_mac, channel->server ? client : server);
    explicit_bzero(keys, sizeof keys);
}

static void make_nonce(bool from_server, uint64_t counter, uint8_t out[FGW_AEAD_NONCE_SIZE])
{
    memcpy(out, from_server ? "S2C" : "C2S", 4);
    fgw_put_u64be(out + 4, counter);
}

/* -- sending ------------------------------------------------------------------------------------- */

/* A counter is used up by the end of the tag: what was begun and not ended was not sent. */
static void begin_frame(struct fgw_channel *channel, uint8_t kind, size_t length,
                        uint8_t head[FRAME_HEAD])
{
    uint8_t nonce[FGW_AEAD_NONCE_SIZE];
    memset(head, 0, FRAME_HEAD);
    fgw_put_u32le(head, (uint32_t)length);
    head[4] = kind;
    make_nonce(channel->server, channel->sent, nonce);
    fgw_gmac_begin(&channel->send_mac, nonce);
    fgw_gmac_update(&channel->send_mac, fgw_bytes(head, FRAME_HEAD));
}

static void end_frame(struct fgw_channel *channel, uint8_t tag[TAG])
{
    fgw_gmac_end(&channel->send_mac, tag);
    channel->sent++;
}

enum fgw_err fgw_channel_send(struct fgw_channel *channel, uint8_t kind,
                              const struct fgw_bytes *parts, size_t part_count)
{
    uint8_t head[FRAME_HEAD] = {0};
    uint8_t tag[TAG];
    struct iovec iov[FGW_BLOCKAPI_PARTS_MAX + 2];
    size_t length = 0;
    FGW_CHECK(part_count <= FGW_BLOCKAPI_PARTS_MAX);
    for (size_t i = 0; i < part_count; i++) {
        length += parts[i].len;
    }
    FGW_CHECK(length <= FGW_BLOCKAPI_PAYLOAD_MAX);
    begin_frame(channel, kind, length, head);
    iov[0] = (struct iovec){head, sizeof head};
    unsigned count = 1;
    for (size_t i = 0; i < part_count; i++) {
        if (parts[i].len > 0) {
            fgw_gmac_update(&channel->send_mac, parts[i]);
            iov[count++] = (struct iovec){(void *)(uintptr_t)parts[i].ptr, parts[i].len};
        }
    }
    end_frame(channel, tag);
    iov[count++] = (struct iovec){tag, sizeof tag};
    return fgw_conn_writev(channel->conn, iov, count, false);
}

void fgw_channel_file_begin(struct fgw_channel *channel, uint8_t kind, struct fgw_bytes head,
                            size_t file_len)
{
    FGW_CHECK(head.len <= sizeof channel->file_head - FRAME_HEAD);
    FGW_CHECK(file_len <= FGW_BLOCKAPI_PAYLOAD_MAX - head.len);
    begin_frame(channel, kind, head.len + file_len, channel->file_head);
    memcpy(channel->file_head + FRAME_HEAD, head.ptr, head.len);
    fgw_gmac_update(&channel->send_mac, head);
    channel->file_head_len = FRAME_HEAD + head.len;
    channel->file_len = file_len;
}

void fgw_channel_file_bytes(struct fgw_channel *channel, struct fgw_bytes bytes)
{
    fgw_gmac_update(&channel->send_mac, bytes);
}

enum fgw_err fgw_channel_send_file(struct fgw_channel *channel, int fd, uint64_t offset)
{
    uint8_t tag[TAG];
    struct iovec head = {channel->file_head, channel->file_head_len};
    end_frame(channel, tag);
    enum fgw_err err = fgw_conn_writev(channel->conn, &head, 1, true);
    if (err == FGW_OK) {
        err = fgw_conn_send_file(channel->conn, fd, offset, channel->file_len);
    }
    return err == FGW_OK ? fgw_conn_write(channel->conn, fgw_bytes(tag, TAG)) : err;
}

/* -- receiving ----------------------------------------------------------------------------------- */

/* Room for `need` bytes in a row from input_start on. */
static void make_room(struct fgw_channel *channel, size_t need)
{
    if (channel->input_start > 0 && channel->input_start + need > channel->input_cap) {
        memmove(channel->input, channel->input + channel->input_start,
                channel->input_end - channel->input_start);
        channel->input_end -= channel->input_start;
        channel->input_start = 0;
    }
    if (need > channel->input_cap) {
        channel->input_cap = need < FIRST_INPUT ? FIRST_INPUT : need;
        channel->input = fgw_xrealloc(channel->input, channel->input_cap);
    }
}

static size_t unread(const struct fgw_channel *channel)
{
    return channel->input_end - channel->input_start;
}

/* More bytes, as many as have come, but no more than are worth looking at in one go. */
static enum fgw_err read_more(struct fgw_channel *channel)
{
    size_t got;
    size_t room = channel->input_cap - channel->input_end;
    bool between = unread(channel) == 0;
    enum fgw_err err = fgw_conn_read(channel->conn, channel->input + channel->input_end,
                                     room < READ_STEP ? room : READ_STEP, &got);
    if (err != FGW_OK) {
        return err == FGW_ERR_END && !between ? FGW_ERR_CLIENT_GONE : err;
    }
    channel->input_end += got;
    return FGW_OK;
}

static enum fgw_err fill(struct fgw_channel *channel, size_t need)
{
    enum fgw_err err = FGW_OK;
    make_room(channel, need);
    while (err == FGW_OK && unread(channel) < need) {
        err = read_more(channel);
    }
    return err;
}

static void consume(struct fgw_channel *channel, size_t count)
{
    channel->input_start += count;
    if (channel->input_start == channel->input_end) {
        channel->input_start = channel->input_end = 0;
    }
}

/* The head of a frame, at input_start, and room for the rest. */
static enum fgw_err fill_head(struct fgw_channel *channel, size_t *out_length)
{
    consume(channel, channel->consume_next);
    channel->consume_next = 0;
    enum fgw_err err = fill(channel, FRAME_HEAD);
    if (err != FGW_OK) {
        return err;
    }
    const uint8_t *head = channel->input + channel->input_start;
    uint32_t length = fgw_get_u32le(head);
    if (length > channel->payload_max || head[5] != 0 || head[6] != 0 || head[7] != 0) {
        return FGW_ERR_PARSE;
    }
    make_room(channel, FRAME_HEAD + (size_t)length + TAG);
    *out_length = length;
    return FGW_OK;
}

/* -- the tag of what comes in -- */

static void begin_tag(struct fgw_channel *channel)
{
    uint8_t nonce[FGW_AEAD_NONCE_SIZE];
    make_nonce(!channel->server, channel->received, nonce);
    fgw_gmac_begin(&channel->receive_mac, nonce);
    fgw_gmac_update(&channel->receive_mac,
                    fgw_bytes(channel->input + channel->input_start, FRAME_HEAD));
}

static void look_at(struct fgw_channel *channel, size_t at, size_t count, size_t length)
{
    const uint8_t *frame = channel->input + channel->input_start;
    struct fgw_bytes bytes = fgw_bytes(frame + FRAME_HEAD + at, count);
    fgw_gmac_update(&channel->receive_mac, bytes);
    if (channel->tap != NULL) {
        channel->tap(channel->tap_context, frame[4], at, bytes, length);
    }
}

static bool tag_is_right(struct fgw_channel *channel, size_t length)
{
    uint8_t tag[TAG];
    const uint8_t *frame = channel->input + channel->input_start;
    fgw_gmac_end(&channel->receive_mac, tag);
    return fgw_bytes_eq_secret(fgw_bytes(tag, TAG), fgw_bytes(frame + FRAME_HEAD + length, TAG));
}

/* What came of the payload is looked at in pieces, a large one while the rest is on its way. */
static enum fgw_err fill_payload(struct fgw_channel *channel, size_t length)
{
    size_t seen = 0;
    for (;;) {
        size_t have = unread(channel) - FRAME_HEAD;
        have = have < length ? have : length;
        while (seen < have) {
            size_t count = have - seen < READ_STEP ? have - seen : READ_STEP;
            look_at(channel, seen, count, length);
            seen += count;
        }
        if (unread(channel) >= FRAME_HEAD + length + TAG) {
            return FGW_OK;
        }
        enum fgw_err err = read_more(channel);
        if (err != FGW_OK) {
            return err;
        }
    }
}

static void hand_out(struct fgw_channel *channel, size_t length, uint8_t *out_kind,
                     struct fgw_bytes *out_payload)
{
    const uint8_t *frame = channel->input + channel->input_start;
    channel->received++;
    channel->consume_next = FRAME_HEAD + length + TAG;
    channel->payload_max = FGW_BLOCKAPI_PAYLOAD_MAX;
    *out_kind = frame[4];
    *out_payload = fgw_bytes(frame + FRAME_HEAD, length);
}

enum fgw_err fgw_channel_receive(struct fgw_channel *channel, uint8_t *out_kind,
                                 struct fgw_bytes *out_payload)
{
    size_t length;
    enum fgw_err err = fill_head(channel, &length);
    if (err != FGW_OK) {
        return err;
    }
    begin_tag(channel);
    err = fill_payload(channel, length);
    if (err != FGW_OK) {
        return err;
    }
    if (!tag_is_right(channel, length)) {
        return FGW_ERR_CORRUPT;
    }
    hand_out(channel, length, out_kind, out_payload);
    return FGW_OK;
}

void fgw_channel_set_tap(struct fgw_channel *channel, fgw_channel_tap_fn *tap, void *context)
{
    channel->tap = tap;
    channel->tap_context = context;
}

bool fgw_channel_pending(struct fgw_channel *channel)
{
    if (channel->input_end - channel->input_start > channel->consume_next ||
        fgw_conn_has_buffered(channel->conn)) {
        return true;
    }
    uint8_t byte;
    size_t got;
    enum fgw_err err = fgw_conn_try_read(channel->conn, &byte, 1, &got);
    if (err == FGW_OK) {
        fgw_conn_unread(channel->conn, fgw_bytes(&byte, 1));
    }
    return err != FGW_ERR_AGAIN;
}

/* -- opening ------------------------------------------------------------------------------------- */

struct versions {
    uint8_t lowest, highest;
};

/* Tests play a program of another release: FGW_TEST_BLOCKAPI_VERSIONS is its lowest and highest
 * version, two digits. */
static struct versions spoken(void)
{
    const char *text = getenv("FGW_TEST_BLOCKAPI_VERSIONS");
    bool given =
        text != NULL && strlen(text) == 2 && text[0] >= '1' && text[0] <= text[1] && text[1] <= '9';
    return given ? (struct versions){(uint8_t)(text[0] - '0'), (uint8_t)(text[1] - '0')}
                 : (struct versions){FGW_BLOCKAPI_VERSION_LOWEST, FGW_BLOCKAPI_VERSION};
}

/* The highest that both speak; 0: none. */
static uint8_t common_version(struct versions a, struct versions b)
{
    uint8_t lowest = a.lowest > b.lowest ? a.lowest : b.lowest;
    uint8_t highest = a.highest < b.highest ? a.highest : b.highest;
    return lowest <= highest ? highest : 0;
}

enum fgw_err fgw_channel_connect(struct fgw_channel *channel, struct fgw_conn *conn,
                                 struct fgw_bytes secret)
{
    uint8_t hellos[CLIENT_HELLO + SERVER_HELLO] = "FGWC";
    uint8_t *theirs = hellos + CLIENT_HELLO;
    channel->conn = conn;
    struct versions ours = spoken();
    hellos[4] = ours.lowest;
    hellos[5] = ours.highest;
    fgw_rng_fill(hellos + 8, RANDOM_SIZE);
    enum fgw_err err = fgw_conn_write(conn, fgw_bytes(hellos, CLIENT_HELLO));
    if (err == FGW_OK) {
        err = fgw_conn_read_exact(conn, theirs, SERVER_HELLO);
    }
    if (err != FGW_OK) {
        return err;
    }
    if (memcmp(theirs, SERVER_MAGIC, sizeof SERVER_MAGIC) != 0) {
        return FGW_ERR_PARSE;
    }
    if (theirs[4] < ours.lowest || theirs[4] > ours.highest) {
        return FGW_ERR_NEWER_VERSION;
    }
    memcpy(channel->store_id, theirs + 8, FGW_BLOCKAPI_ID_SIZE);
    channel->epoch = fgw_get_u64le(theirs + 24);
    channel->version = theirs[4];
    take_keys(channel, secret, hellos);
    return FGW_OK;
}

static enum fgw_err exchange_hellos(struct fgw_channel *channel,
                                    uint8_t hellos[CLIENT_HELLO + SERVER_HELLO])
{
    uint8_t *ours = hellos + CLIENT_HELLO;
    enum fgw_err err = fgw_conn_read_exact(channel->conn, hellos, CLIENT_HELLO);
    if (err != FGW_OK) {
        return err;
    }
    if (memcmp(hellos, "FGWC", 4) != 0 || hellos[4] > hellos[5]) {
        return FGW_ERR_PARSE;
    }
    uint8_t version = common_version(spoken(), (struct versions){hellos[4], hellos[5]});
    memset(ours, 0, SERVER_HELLO);
    memcpy(ours, SERVER_MAGIC, sizeof SERVER_MAGIC);
    ours[4] = version;
    channel->version = version;
    memcpy(ours + 8, channel->store_id, FGW_BLOCKAPI_ID_SIZE);
    fgw_put_u64le(ours + 24, channel->epoch);
    fgw_rng_fill(ours + 32, RANDOM_SIZE);
    err = fgw_conn_write(channel->conn, fgw_bytes(ours, SERVER_HELLO));
    return err == FGW_OK && version == 0 ? FGW_ERR_NEWER_VERSION : err;
}

enum fgw_err fgw_channel_accept(struct fgw_channel *channel, struct fgw_conn *conn,
                                const struct fgw_channel_secrets *secrets, uint8_t *out_kind,
                                struct fgw_bytes *out_payload)
{
    uint8_t hellos[CLIENT_HELLO + SERVER_HELLO];
    size_t length;
    channel->conn = conn;
    channel->server = true;
    enum fgw_err err = exchange_hellos(channel, hellos);
    if (err == FGW_OK) {
        err = fill_head(channel, &length);
    }
    if (err == FGW_OK) {
        err = fill(channel, FRAME_HEAD + length + TAG);
    }
    if (err != FGW_OK) {
        return err;
    }
    for (size_t i = 0; i < secrets->count; i++) {
        take_keys(channel, secrets->items[i], hellos);
        begin_tag(channel);
        look_at(channel, 0, length, length);
        if (tag_is_right(channel, length)) {
            hand_out(channel, length, out_kind, out_payload);
            return FGW_OK;
        }
        drop_keys(channel);
    }
    return FGW_ERR_ACCESS_DENIED;
}
