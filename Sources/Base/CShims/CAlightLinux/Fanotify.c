#define _GNU_SOURCE
#include "CAlightLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef FAN_REPORT_DFID_NAME
#define FAN_REPORT_DFID_NAME 0x00000C00
#endif
#ifndef FAN_EVENT_INFO_TYPE_DFID_NAME
#define FAN_EVENT_INFO_TYPE_DFID_NAME 2
#endif
// Linux 6.5: requests a handle that identifies a file on file systems whose handles cannot be opened. Defined by its
// value, because glibc may lack the name.
#define HANDLE_FOR_NAMES 0x200

_Static_assert(
    CAL_DIRECTORY_KEY_SIZE >= sizeof(fsid_t) + sizeof(struct file_handle) + MAX_HANDLE_SZ, "capacity for any handle");

int cal_fanotify_open(int is_unlimited) {
    unsigned int flags = FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_CLOEXEC | FAN_NONBLOCK;
    if (is_unlimited) flags |= FAN_UNLIMITED_QUEUE | FAN_UNLIMITED_MARKS;
    int fd = fanotify_init(flags, O_RDONLY | O_LARGEFILE);
    return fd >= 0 ? fd : -errno;
}

int cal_fanotify_mark(int fd, int directory, int is_file_system, int is_removal) {
    uint64_t mask = FAN_CLOSE_WRITE | FAN_CREATE | FAN_MOVED_TO | FAN_MOVED_FROM | FAN_DELETE | FAN_ATTRIB | FAN_ONDIR;
    unsigned int flags = is_removal ? FAN_MARK_REMOVE : FAN_MARK_ADD;
    if (is_file_system) {
        flags |= FAN_MARK_FILESYSTEM;
    } else {
        flags |= FAN_MARK_ONLYDIR;
        mask |= FAN_EVENT_ON_CHILD;
    }
    return fanotify_mark(fd, flags, mask, directory, NULL) == 0 ? 0 : errno;
}

int cal_fanotify_next(const void *buffer, size_t size, size_t *offset, struct cal_fanotify_event *out) {
    while (*offset + sizeof(struct fanotify_event_metadata) <= size) {
        struct fanotify_event_metadata event;
        const uint8_t *start = (const uint8_t *)buffer + *offset;
        memcpy(&event, start, sizeof event);
        if (event.event_len < sizeof event || *offset + event.event_len > size) return 0;
        *offset += event.event_len;
        memset(out, 0, sizeof *out);
        out->pid = event.pid;
        if (event.mask & FAN_Q_OVERFLOW) {
            out->is_overflow = 1;
            return 1;
        }
        if (event.mask & (FAN_CLOSE_WRITE | FAN_CREATE | FAN_MOVED_TO)) out->is_content = 1;
        if (event.mask & (FAN_DELETE | FAN_MOVED_FROM)) out->is_removal = 1;
        if (event.mask & FAN_ATTRIB) out->is_attributes = 1;
        if ((event.mask & FAN_ONDIR) && (event.mask & (FAN_MOVED_FROM | FAN_MOVED_TO))) out->is_directory_move = 1;
        // Each record starts with a header of four bytes that contains the length of the record.
        for (size_t at = event.metadata_len; at + sizeof(struct fanotify_event_info_header) <= event.event_len;) {
            struct fanotify_event_info_header header;
            memcpy(&header, start + at, sizeof header);
            if (header.len < sizeof header || at + header.len > event.event_len) break;
            const uint8_t *record = start + at;
            at += header.len;
            size_t fixed = sizeof header + sizeof(fsid_t) + sizeof(struct file_handle);
            if (header.info_type != FAN_EVENT_INFO_TYPE_DFID_NAME || header.len < fixed) continue;
            unsigned int bytes;
            memcpy(&bytes, record + sizeof header + sizeof(fsid_t), sizeof bytes);
            if (bytes > MAX_HANDLE_SZ || fixed + bytes > header.len) continue;
            out->directory_key = record + sizeof header;
            out->directory_key_length = sizeof(fsid_t) + sizeof(struct file_handle) + bytes;
            out->name = (const char *)record + fixed + bytes;
            out->name_length = strnlen(out->name, header.len - fixed - bytes);
        }
        if (out->directory_key) return 1;
    }
    return 0;
}

static int64_t key_of(int directory, const char *path, int flags, uint8_t *key) {
    struct {
        struct file_handle handle;
        uint8_t bytes[MAX_HANDLE_SZ];
    } found;
    int mount;
    found.handle.handle_bytes = MAX_HANDLE_SZ;
    if (name_to_handle_at(directory, path, &found.handle, &mount, flags) != 0) {
        if (errno != EOPNOTSUPP) return -errno;
        found.handle.handle_bytes = MAX_HANDLE_SZ;
        if (name_to_handle_at(directory, path, &found.handle, &mount, flags | HANDLE_FOR_NAMES) != 0) return -errno;
    }
    size_t length = sizeof(struct file_handle) + found.handle.handle_bytes;
    memcpy(key + sizeof(fsid_t), &found, length);
    return (int64_t)(sizeof(fsid_t) + length);
}

int64_t cal_directory_key_descriptor(int directory, uint8_t *key) {
    struct statfs status;
    if (fstatfs(directory, &status) != 0) return -errno;
    memcpy(key, &status.f_fsid, sizeof(fsid_t));
    return key_of(directory, "", AT_EMPTY_PATH, key);
}

int cal_open_key(int mount, const uint8_t *key, size_t length) {
    struct {
        struct file_handle handle;
        uint8_t bytes[MAX_HANDLE_SZ];
    } wanted;
    if (length < sizeof(fsid_t) + sizeof(struct file_handle) || length > sizeof(fsid_t) + sizeof wanted) return -EINVAL;
    memcpy(&wanted, key + sizeof(fsid_t), length - sizeof(fsid_t));
    int fd = open_by_handle_at(mount, &wanted.handle, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : -errno;
}

/// Reads a whole small file. Returns its length, or -1.
static ssize_t read_small(int directory, const char *name, char *buffer, size_t capacity) {
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t count = read(fd, buffer, capacity);
    close(fd);
    return count;
}

void cal_read_process(int pid, struct cal_process *out) {
    out->name_length = -1;
    out->executable_length = -1;
    out->has_user = 0;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", pid);
    // One descriptor makes sure that all data belongs to one process: the id may be reused at any time.
    int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return;
    // Reads first what disappears first when the process exits.
    out->executable_length = readlinkat(directory, "exe", out->executable, sizeof out->executable);
    ssize_t count = read_small(directory, "comm", out->name, sizeof out->name);
    if (count > 0) out->name_length = out->name[count - 1] == '\n' ? count - 1 : count;
    char status[1024];
    count = read_small(directory, "status", status, sizeof status - 1);
    if (count > 0) {
        status[count] = 0;
        // The real and the effective user id. The owner of the directory itself would be root for a program that has
        // changed its user.
        char *line = strstr(status, "\nUid:");
        unsigned int real, effective;
        if (line && sscanf(line + 5, "%u %u", &real, &effective) == 2) {
            out->user = effective;
            out->has_user = 1;
        }
    }
    close(directory);
}
