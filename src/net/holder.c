/* holder.c: see holder.h. /proc/net/{tcp,tcp6,unix} give the inode of the socket, the links in
 * /proc/PID/fd the process that has it open. */
#include "net/holder.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"

enum { TCP_STATE_LISTEN = 0x0a, LINE_SIZE = 512 };
/* words of a line of the tables (proc_net(5)); the last one that is asked for takes the rest */
enum { TCP_LOCAL = 1, TCP_STATE = 3, TCP_INODE = 9, TCP_WORDS = 11 };
enum { UNIX_INODE = 6, UNIX_PATH = 7, UNIX_WORDS = 8 };

/* Cuts the line at blanks; false when it has fewer words. */
static bool split_words(char *line, char **words, size_t count)
{
    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 0; i < count; i++) {
        line += strspn(line, " ");
        if (*line == '\0') {
            return false;
        }
        words[i] = line;
        line += i + 1 < count ? strcspn(line, " ") : strlen(line);
        if (*line != '\0') {
            *line++ = '\0';
        }
    }
    return true;
}

static unsigned long long listener_inode(const char *table, uint16_t port)
{
    FILE *file = fopen(table, "re");
    if (file == NULL) {
        return 0;
    }
    char line[LINE_SIZE];
    unsigned long long found = 0;
    while (found == 0 && fgets(line, sizeof line, file) != NULL) {
        char *words[TCP_WORDS];
        if (!split_words(line, words, TCP_WORDS)) {
            continue;
        }
        const char *colon = strchr(words[TCP_LOCAL], ':');
        if (colon != NULL && strtoul(colon + 1, NULL, 16) == port &&
            strtoul(words[TCP_STATE], NULL, 16) == TCP_STATE_LISTEN) {
            found = strtoull(words[TCP_INODE], NULL, 10);
        }
    }
    (void)fclose(file);
    return found;
}

static unsigned long long unix_inode(const char *path)
{
    FILE *file = fopen("/proc/net/unix", "re");
    if (file == NULL) {
        return 0;
    }
    char line[LINE_SIZE];
    unsigned long long found = 0;
    while (found == 0 && fgets(line, sizeof line, file) != NULL) {
        char *words[UNIX_WORDS];
        if (split_words(line, words, UNIX_WORDS) && strcmp(words[UNIX_PATH], path) == 0) {
            found = strtoull(words[UNIX_INODE], NULL, 10);
        }
    }
    (void)fclose(file);
    return found;
}

static bool process_has_inode(const char *pid, unsigned long long inode)
{
    char name[300];
    char wanted[48];
    (void)snprintf(wanted, sizeof wanted, "socket:[%llu]", inode);
    (void)snprintf(name, sizeof name, "/proc/%s/fd", pid);
    DIR *dir = opendir(name);
    if (dir == NULL) {
        return false;
    }
    bool found = false;
    struct dirent *entry;
    while (!found && (entry = readdir(dir)) != NULL) {
        char target[sizeof wanted] = "";
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        found = len > 0 && strcmp(target, wanted) == 0;
    }
    (void)closedir(dir);
    return found;
}

static void describe(long pid, char *out, size_t out_size)
{
    char name[300];
    char command[64] = "?";
    (void)snprintf(name, sizeof name, "/proc/%ld/comm", pid);
    FILE *file = fopen(name, "re");
    if (file != NULL) {
        if (fgets(command, sizeof command, file) != NULL) {
            command[strcspn(command, "\n")] = '\0';
        }
        (void)fclose(file);
    }
    (void)snprintf(out, out_size, "%s (pid %ld)", command, pid);
}

static bool find_process(unsigned long long inode, long *out_pid)
{
    DIR *dir = inode == 0 ? NULL : opendir("/proc");
    if (dir == NULL) {
        return false;
    }
    bool found = false;
    struct dirent *entry;
    while (!found && (entry = readdir(dir)) != NULL) {
        found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                process_has_inode(entry->d_name, inode);
        if (found) {
            *out_pid = strtol(entry->d_name, NULL, 10);
        }
    }
    (void)closedir(dir);
    return found;
}

static void describe_holder(unsigned long long inode, char *out, size_t out_size)
{
    long pid;
    if (find_process(inode, &pid)) {
        describe(pid, out, out_size);
    } else {
        (void)snprintf(out, out_size, "another process");
    }
}

static unsigned long long tcp_inode(uint16_t port)
{
    unsigned long long inode = listener_inode("/proc/net/tcp", port);
    return inode != 0 ? inode : listener_inode("/proc/net/tcp6", port);
}

void fgw_holder_of_tcp_port(uint16_t port, char *out, size_t out_size)
{
    describe_holder(tcp_inode(port), out, out_size);
}

bool fgw_holder_pid_of_tcp_port(uint16_t port, long *out_pid)
{
    return find_process(tcp_inode(port), out_pid);
}

void fgw_holder_of_unix(const char *path, char *out, size_t out_size)
{
    describe_holder(unix_inode(path), out, out_size);
}
