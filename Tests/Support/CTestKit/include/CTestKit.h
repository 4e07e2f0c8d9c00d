// Linux calls for tests that Swift's Glibc module lacks, each as one plain function.
#ifndef CTESTKIT_H
#define CTESTKIT_H

#include <stddef.h>
#include <stdint.h>

/// Lets two existing paths change places (renameat2 with RENAME_EXCHANGE); 0, or the errno.
int ctk_exchange(const char *one, const char *other);

/// Lets the rights of another user decide what this thread may do with files; as root only.
void ctk_access_files_as(unsigned int user);

/// Opens a file without a name in the folder (O_TMPFILE), for writing; a descriptor, or a negative errno.
int ctk_open_unnamed(const char *folder, unsigned int mode);

/// Gives the file behind a descriptor a name; 0, or the errno.
int ctk_link_descriptor(int fd, const char *path);

/// Makes this process the parent of all whose own parent dies, as long as they descend from it.
void ctk_become_subreaper(void);

/// Gives this thread mounts of its own, which no other thread or process sees; 0, or the errno.
int ctk_unshare_mounts(void);

/// Mounts a file system without a device at the folder, for this thread; 0, or the errno.
int ctk_mount(const char *type, const char *folder, const char *options);

/// Unmounts what was mounted last at the folder, even if it is in use.
void ctk_unmount(const char *folder);

/// What a file holds, for a program that only compares.
struct ctk_content {
    uint64_t size;
    /// FNV-1a over all bytes.
    uint64_t sum;
};

/// Reads the file, without following a link; 0, or the errno.
int ctk_read_content(const char *path, struct ctk_content *content);

#endif
