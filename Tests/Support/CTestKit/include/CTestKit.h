// Linux system calls for tests that Swift's Glibc module lacks, each as a plain function.
#ifndef CTESTKIT_H
#define CTESTKIT_H

#include <stddef.h>
#include <stdint.h>

/// Exchanges two existing paths (renameat2 with RENAME_EXCHANGE). Returns 0 or the errno.
int ctk_exchange(const char *one, const char *other);

/// Makes this thread access files with the permissions of another user. Works as root only.
void ctk_access_files_as(unsigned int user);

/// Opens an unnamed file in the directory (O_TMPFILE) for writing. Returns a descriptor or a negative errno.
int ctk_open_unnamed(const char *directory, unsigned int mode);

/// Links the file of a descriptor to a path. Returns 0 or the errno.
int ctk_link_descriptor(int fd, const char *path);

/// Makes this process the parent of orphaned descendants (PR_SET_CHILD_SUBREAPER).
void ctk_become_subreaper(void);

/// Moves this thread into a private mount namespace. Returns 0 or the errno.
int ctk_unshare_mounts(void);

/// Mounts a file system without a device at the directory, in this thread's namespace. Returns 0 or the errno.
int ctk_mount(const char *type, const char *directory, const char *options);

/// Unmounts the topmost file system at the directory, even if it is in use.
void ctk_unmount(const char *directory);

/// The size and a checksum of a file's content, for comparisons.
struct ctk_content {
    uint64_t size;
    /// FNV-1a over all bytes.
    uint64_t sum;
};

/// Reads the file without following a link. Returns 0 or the errno.
int ctk_read_content(const char *path, struct ctk_content *content);

#endif
