/* canonical.c: the canonical request of SigV4, written piecewise.
 *
 * S3 differs from other AWS services: the path is encoded exactly once and never normalised ("//",
 * "." and ".." stay). Source: AWS "Create a signed AWS API request", step 1.
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/encode.h"
#include "sigv4/sigv4_internal.h"

enum { SORT_BY_HAND_MAX = 16 };

static const bool UNRESERVED[256] = {
    ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['0' ... '9'] = true, ['-'] = true,
    ['.'] = true,         ['_'] = true,         ['~'] = true};

/* -- sink ---------------------------------------------------------------------------------- */

void fgw_sig_sink_flush(struct fgw_sig_sink *sink)
{
    struct fgw_bytes block = fgw_bytes(sink->block, sink->len);
    if (sink->digest != NULL) {
        fgw_digest_update(sink->digest, block);
    } else {
        (void)fgw_buf_append(sink->text, block);
    }
    sink->len = 0;
}

void fgw_sig_sink_write(struct fgw_sig_sink *sink, struct fgw_bytes bytes)
{
    while (bytes.len > 0) {
        size_t room = FGW_SIG_SINK_SIZE - sink->len;
        size_t take = bytes.len < room ? bytes.len : room;
        memcpy(sink->block + sink->len, bytes.ptr, take);
        sink->len += take;
        bytes = fgw_bytes_sub(bytes, take, SIZE_MAX);
        if (sink->len == FGW_SIG_SINK_SIZE) {
            fgw_sig_sink_flush(sink);
        }
    }
}

/* -- percent-encoding ---------------------------------------------------------------------- */

/* The decoded byte at the front of `text` (which is not empty), and how many bytes say it. */
static uint8_t decoded(struct fgw_bytes text, bool plus_is_space, size_t *out_used)
{
    uint8_t c = text.ptr[0];
    *out_used = 1;
    if (c == '%' && text.len >= 3 && fgw_hex_decode(fgw_bytes(text.ptr + 1, 2), &c) == FGW_OK) {
        *out_used = 3;
        return c;
    }
    return c == '+' && plus_is_space ? ' ' : c;
}

/* How many bytes at the front encode to themselves. */
static size_t plain_run(struct fgw_bytes text, bool keep_slash)
{
    size_t run = 0;
    while (run < text.len && (UNRESERVED[text.ptr[run]] || (keep_slash && text.ptr[run] == '/'))) {
        run++;
    }
    return run;
}

/* Writes one byte encoded; returns its length, 1 or 3. */
static size_t encode_byte(uint8_t c, uint8_t out[3])
{
    static const char UPPER[] = "0123456789ABCDEF";
    if (UNRESERVED[c]) {
        out[0] = c;
        return 1;
    }
    out[0] = '%';
    out[1] = (uint8_t)UPPER[c >> 4];
    out[2] = (uint8_t)UPPER[c & 15];
    return 3;
}

void fgw_sig_write_path(struct fgw_sig_sink *sink, struct fgw_bytes raw_path)
{
    while (raw_path.len > 0) {
        size_t used = plain_run(raw_path, true);
        if (used > 0) {
            fgw_sig_sink_write(sink, fgw_bytes_sub(raw_path, 0, used));
        } else {
            uint8_t encoded[3];
            uint8_t c = decoded(raw_path, false, &used);
            size_t len = c == '/' ? 1 : encode_byte(c, encoded);
            fgw_sig_sink_write(sink, fgw_bytes(c == '/' ? &c : encoded, len));
        }
        raw_path = fgw_bytes_sub(raw_path, used, SIZE_MAX);
    }
}

/* -- query --------------------------------------------------------------------------------- */

/* Canonical form of one name or value: what was sent when that is canonical, as most of it is, else
 * written at *out, which moves behind it. */
static struct fgw_bytes canonical_part(struct fgw_bytes raw, enum fgw_sig_form form, uint8_t **out)
{
    size_t used = form == FGW_SIG_FORM_RAW ? raw.len : plain_run(raw, false);
    if (used == raw.len) {
        return raw;
    }
    uint8_t *start = *out;
    uint8_t *at = start;
    while (raw.len > 0) {
        if (used > 0) {
            memcpy(at, raw.ptr, used);
            at += used;
        } else {
            at += encode_byte(decoded(raw, true, &used), at);
        }
        raw = fgw_bytes_sub(raw, used, SIZE_MAX);
        used = plain_run(raw, false);
    }
    *out = at;
    return fgw_bytes(start, (size_t)(at - start));
}

static int compare_pairs(const void *left, const void *right)
{
    const struct fgw_sig_pair *a = left;
    const struct fgw_sig_pair *b = right;
    int order = fgw_bytes_cmp(a->name, b->name);
    return order != 0 ? order : fgw_bytes_cmp(a->value, b->value);
}

/* Signers send them nearly in order: few are moved, and a hostile order is left to qsort. */
static void sort_pairs(struct fgw_sig_pair *pairs, size_t count)
{
    if (count > SORT_BY_HAND_MAX) {
        qsort(pairs, count, sizeof *pairs, compare_pairs);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct fgw_sig_pair pair = pairs[i];
        size_t at = i;
        for (; at > 0 && compare_pairs(&pairs[at - 1], &pair) > 0; at--) {
            pairs[at] = pairs[at - 1];
        }
        pairs[at] = pair;
    }
}

enum fgw_err fgw_sig_query_pairs(struct fgw_arena *arena, struct fgw_bytes raw_query,
                                 enum fgw_sig_form form, struct fgw_sig_pairs *out_pairs)
{
    size_t parts = raw_query.len == 0 ? 0 : fgw_bytes_count_byte(raw_query, '&') + 1;
    if (parts > FGW_SIG_QUERY_PAIRS_MAX) {
        return FGW_ERR_TOO_LARGE;
    }
    struct fgw_sig_pairs result = {NULL, 0};
    if (parts > 0) {
        struct fgw_sig_pair *pairs = fgw_arena_alloc(arena, parts * sizeof *pairs);
        uint8_t *out = form == FGW_SIG_FORM_RAW ? NULL : fgw_arena_alloc(arena, raw_query.len * 3);
        struct fgw_bytes part;
        while (fgw_bytes_split(&raw_query, '&', &part)) {
            if (part.len == 0) {
                continue;
            }
            struct fgw_bytes value = part;
            struct fgw_bytes name = part;
            (void)fgw_bytes_split(&value, '=', &name);
            pairs[result.count].name = canonical_part(name, form, &out);
            pairs[result.count].value = canonical_part(value, form, &out);
            result.count++;
        }
        sort_pairs(pairs, result.count);
        result.pairs = pairs;
    }
    *out_pairs = result;
    return FGW_OK;
}

static void write_query(struct fgw_sig_sink *sink, const struct fgw_sig_pairs *query)
{
    bool first = true;
    for (size_t i = 0; i < query->count; i++) {
        const struct fgw_sig_pair *pair = &query->pairs[i];
        if (fgw_bytes_eq(pair->name, FGW_LIT("X-Amz-Signature"))) {
            continue;
        }
        if (!first) {
            fgw_sig_sink_byte(sink, '&');
        }
        first = false;
        fgw_sig_sink_write(sink, pair->name);
        fgw_sig_sink_byte(sink, '=');
        fgw_sig_sink_write(sink, pair->value);
    }
}

/* -- headers ------------------------------------------------------------------------------- */

bool fgw_sig_name_eq(struct fgw_bytes a, struct fgw_bytes b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (fgw_sig_lower(a.ptr[i]) != fgw_sig_lower(b.ptr[i])) {
            return false;
        }
    }
    return true;
}

const struct fgw_sig_header *fgw_sig_header_find(const struct fgw_sig_request *request,
                                                 const char *name)
{
    struct fgw_bytes wanted = fgw_bytes_str(name);
    for (size_t i = 0; i < request->header_count; i++) {
        if (request->headers[i].name.len == wanted.len &&
            fgw_bytes_ieq(request->headers[i].name, wanted)) {
            return &request->headers[i];
        }
    }
    return NULL;
}

enum fgw_err fgw_sig_split_names(struct fgw_arena *arena, struct fgw_bytes list,
                                 const struct fgw_bytes **out_names, size_t *out_count)
{
    size_t count = fgw_bytes_count_byte(list, ';') + 1;
    if (count > FGW_SIG_SIGNED_HEADERS_MAX) {
        return FGW_ERR_TOO_LARGE;
    }
    struct fgw_bytes *names = fgw_arena_alloc(arena, count * sizeof *names);
    struct fgw_bytes rest = list;
    for (size_t i = 0; i < count; i++) {
        if (!fgw_bytes_split(&rest, ';', &names[i]) || names[i].len == 0) {
            return FGW_ERR_PARSE;
        }
    }
    *out_names = names;
    *out_count = count;
    return FGW_OK;
}

/* Trimmed, with each inner run of blanks as one space. */
static void write_value(struct fgw_sig_sink *sink, struct fgw_bytes value)
{
    value = fgw_bytes_trim(value);
    bool blank_before = false;
    for (size_t i = 0; i < value.len; i++) {
        bool blank = value.ptr[i] == ' ' || value.ptr[i] == '\t';
        if (!blank) {
            fgw_sig_sink_byte(sink, value.ptr[i]);
        } else if (!blank_before) {
            fgw_sig_sink_byte(sink, ' ');
        }
        blank_before = blank;
    }
}

/* "name:value,value\n". A signed header that did not arrive counts as empty. */
static void write_header(struct fgw_sig_sink *sink, const struct fgw_sig_request *request,
                         struct fgw_bytes name)
{
    bool first = true;
    for (size_t i = 0; i < name.len; i++) {
        fgw_sig_sink_byte(sink, fgw_sig_lower(name.ptr[i]));
    }
    fgw_sig_sink_byte(sink, ':');
    for (size_t i = 0; i < request->header_count; i++) {
        if (!fgw_sig_name_eq(request->headers[i].name, name)) {
            continue;
        }
        if (!first) {
            fgw_sig_sink_byte(sink, ',');
        }
        first = false;
        write_value(sink, request->headers[i].value);
    }
    fgw_sig_sink_byte(sink, '\n');
}

/* -- canonical request --------------------------------------------------------------------- */

void fgw_sig_write_canonical(struct fgw_sig_sink *sink, const struct fgw_sig_auth *auth,
                             enum fgw_sig_form path_form, const struct fgw_sig_pairs *pairs)
{
    struct fgw_bytes path = auth->request->raw_path;
    fgw_sig_sink_write(sink, auth->request->method);
    fgw_sig_sink_byte(sink, '\n');
    if (path.len == 0) {
        fgw_sig_sink_byte(sink, '/');
    } else if (path_form == FGW_SIG_FORM_RAW) {
        fgw_sig_sink_write(sink, path);
    } else {
        fgw_sig_write_path(sink, path);
    }
    fgw_sig_sink_byte(sink, '\n');
    write_query(sink, pairs);
    fgw_sig_sink_byte(sink, '\n');
    for (size_t i = 0; i < auth->signed_count; i++) {
        write_header(sink, auth->request, auth->signed_names[i]);
    }
    fgw_sig_sink_byte(sink, '\n');
    fgw_sig_sink_write(sink, auth->signed_headers);
    fgw_sig_sink_byte(sink, '\n');
    fgw_sig_sink_write(sink, auth->payload_text);
    fgw_sig_sink_flush(sink);
}

void fgw_sig_hash_canonical(struct fgw_digest *digest, const struct fgw_sig_auth *auth,
                            enum fgw_sig_form path_form, const struct fgw_sig_pairs *pairs,
                            char out_hex[FGW_SIG_HEX_SIZE])
{
    uint8_t hash[FGW_SHA256_SIZE];
    struct fgw_sig_sink sink;
    sink.digest = digest;
    sink.text = NULL;
    sink.len = 0;
    fgw_digest_begin(digest, FGW_DIGEST_SHA256);
    fgw_sig_write_canonical(&sink, auth, path_form, pairs);
    fgw_digest_end(digest, hash);
    fgw_hex_encode(fgw_bytes(hash, sizeof hash), out_hex);
}

struct fgw_bytes fgw_sig_canonical_request(const struct fgw_sig_auth *auth)
{
    struct fgw_buf text;
    struct fgw_sig_sink sink;
    fgw_buf_init(&text, 0);
    sink.digest = NULL;
    sink.text = &text;
    sink.len = 0;
    fgw_sig_write_canonical(&sink, auth, FGW_SIG_FORM_CANONICAL, &auth->query);
    struct fgw_bytes copy = fgw_arena_copy(auth->arena, fgw_buf_bytes(&text));
    fgw_buf_deinit(&text);
    return copy;
}

void fgw_sig_string_line(struct fgw_sig_string *string, struct fgw_bytes line)
{
    FGW_CHECK(line.len + 1 < FGW_SIG_STRING_MAX - string->len);
    if (string->len > 0) {
        string->text[string->len++] = '\n';
    }
    if (line.len > 0) {
        memcpy(string->text + string->len, line.ptr, line.len);
    }
    string->len += line.len;
}
