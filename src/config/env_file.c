/* env_file.c: the lines of a settings file.
 *
 *   # comment            blank lines and lines that begin with # are skipped
 *   KEY=VALUE            blanks around key and value are ignored
 *   export KEY=VALUE     as a shell writes it
 *   KEY="a b" KEY='a b'  up to the same quote; nothing inside is expanded or escaped
 *   KEY=value # comment  behind a blank, # begins a comment, unless it stands in quotes
 *
 * Lines end with LF or CRLF. Hostile bytes are refused line by line, never asserted.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "config/config_internal.h"

/* Reads to the end rather than by size: pipes and files of the kernel have none. */
enum fgw_err config_read_file(const char *path, struct fgw_buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? FGW_ERR_NOT_FOUND : fgw_err_from_errno(errno);
    }
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK) {
        uint8_t chunk[1024];
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got == 0) {
            break;
        }
        if (got < 0 && errno != EINTR) {
            err = fgw_err_from_errno(errno);
        } else if (got > 0) {
            err = fgw_buf_append(out, fgw_bytes(chunk, (size_t)got));
        }
    }
    (void)close(fd);
    return err;
}

static bool key_holds(struct fgw_bytes key)
{
    static const char MORE[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    return text_only(key, MORE, 1, 256) && !(key.ptr[0] >= '0' && key.ptr[0] <= '9');
}

static struct fgw_bytes without_export(struct fgw_bytes text)
{
    struct fgw_bytes word = FGW_LIT("export");
    bool follows = text.len > word.len && (text.ptr[word.len] == ' ' || text.ptr[word.len] == '\t');
    if (fgw_bytes_starts_with(text, word) && follows) {
        return fgw_bytes_trim(fgw_bytes_sub(text, word.len, SIZE_MAX));
    }
    return text;
}

static bool blank_or_comment(struct fgw_bytes text)
{
    struct fgw_bytes trimmed = fgw_bytes_trim(text);
    return trimmed.len == 0 || trimmed.ptr[0] == '#';
}

/* NULL, or what is wrong. */
static const char *unquote(struct fgw_bytes raw, struct fgw_bytes *out)
{
    struct fgw_bytes text = fgw_bytes_trim(raw);
    if (text.len > 0 && (text.ptr[0] == '"' || text.ptr[0] == '\'')) {
        struct fgw_bytes inside = fgw_bytes_sub(text, 1, SIZE_MAX);
        size_t end = fgw_bytes_find_byte(inside, text.ptr[0]);
        if (end == SIZE_MAX) {
            return "a quote that does not end on its line";
        }
        if (!blank_or_comment(fgw_bytes_sub(inside, end + 1, SIZE_MAX))) {
            return "text behind the closing quote";
        }
        *out = fgw_bytes_sub(inside, 0, end);
        return NULL;
    }
    for (size_t i = 0; i < text.len; i++) {
        bool after_blank = i == 0 || text.ptr[i - 1] == ' ' || text.ptr[i - 1] == '\t';
        if (text.ptr[i] == '#' && after_blank) {
            text = fgw_bytes_trim(fgw_bytes_sub(text, 0, i));
            break;
        }
    }
    *out = text;
    return NULL;
}

enum fgw_err env_file_next(struct fgw_bytes *rest, unsigned *line, struct env_line *out_item,
                           const char **out_reason)
{
    struct fgw_bytes text;
    while (fgw_bytes_split(rest, '\n', &text)) {
        ++*line;
        if (fgw_bytes_ends_with(text, FGW_LIT("\r"))) {
            text = fgw_bytes_sub(text, 0, text.len - 1);
        }
        if (fgw_bytes_find_byte(text, '\0') != SIZE_MAX) {
            *out_reason = "a NUL byte";
            return FGW_ERR_PARSE;
        }
        if (blank_or_comment(text)) {
            continue;
        }
        text = without_export(fgw_bytes_trim(text));
        size_t equals = fgw_bytes_find_byte(text, '=');
        struct fgw_bytes key = fgw_bytes_trim(fgw_bytes_sub(text, 0, equals));
        if (equals == SIZE_MAX || !key_holds(key)) {
            *out_reason = "not KEY=VALUE";
            return FGW_ERR_PARSE;
        }
        struct env_line item = {key, {NULL, 0}, *line};
        *out_reason = unquote(fgw_bytes_sub(text, equals + 1, SIZE_MAX), &item.value);
        if (*out_reason != NULL) {
            return FGW_ERR_PARSE;
        }
        *out_item = item;
        return FGW_OK;
    }
    return FGW_ERR_END;
}
