// Linux calls that Swift's Glibc module lacks, each as one plain function.
//
// This header includes no header of the Glibc module: a second copy of a glibc header under _GNU_SOURCE would define
// its types twice.
#ifndef CALIGHT_LINUX_H
#define CALIGHT_LINUX_H

#include <stddef.h>
#include <stdint.h>

/// The result of statx(2) for a path, without following a final symbolic link.
struct cal_stat {
    uint32_t device_major, device_minor;
    uint64_t inode;
    uint64_t size;
    /// The mount id, or 0 if the kernel does not return it.
    uint64_t mount;
    uint32_t mode, uid, gid, nlink;
    int64_t mtime_seconds, ctime_seconds, btime_seconds;
    uint32_t mtime_nanoseconds, ctime_nanoseconds, btime_nanoseconds;
    int has_btime;
};

/// Fills `out` for an open descriptor. Returns 0 or the errno.
int cal_stat_descriptor(int fd, struct cal_stat *out);

/// Fills `out` for an entry of an open directory, or a path. Follows a final link if `follow` is set. Returns 0 or the
/// errno.
int cal_stat_entry(int directory, const char *name, int follow, struct cal_stat *out);

/// Reads the entries of an open directory in the format of getdents64(2). Returns the number of bytes filled, 0 at the
/// end, or a negative errno.
int64_t cal_read_entries(int directory, void *buffer, size_t size);

/// Stores the type of the file system of the open file, with the numbers of statfs(2). Returns 0 or the errno.
int cal_file_system(int fd, uint64_t *type);

/// Makes the C library return unused memory to the system, as far as it can.
///
/// Large tables are always allocated outside the heap, and the number of per-thread heaps is limited. Call this before
/// anything else allocates memory.
void cal_keep_heap_small(void);

/// Checks whether a process can still write to a regular file in an open directory.
///
/// Returns 0 if a read lease could be acquired (it is released at once): no process has the file open for writing or
/// mapped writable. Returns EAGAIN if a process has. Any other errno means that the check is not possible (EACCES: not
/// the owner; EINVAL: the file system has no leases).
int cal_probe_entry_writers(int directory, const char *name);

/// Whether the kernel grants leases on files of other users: this thread has CAP_LEASE, see capabilities(7).
int cal_may_lease_any_file(void);

/// Checks whether a process holds a write lock on a regular file, by flock(2) or fcntl(2).
///
/// Returns 0 if no process does, EAGAIN if a process does, or another errno if the check is not possible. Holds a
/// shared flock for a short time.
int cal_probe_locks(int directory, const char *name);

/// Reads an extended attribute without following a final link. Returns its length in bytes, or a negative errno.
int64_t cal_read_attribute(const char *path, const char *name, void *value, size_t capacity);

/// Removes an extended attribute of an open file. Returns 0 or the errno.
int cal_remove_open_attribute(int fd, const char *name);

/// Opens a directory by its path relative to the open one, without following any symbolic link. Returns a descriptor
/// (CLOEXEC) or a negative errno.
int cal_open_directory(int directory, const char *path);

/// Calls pipe2(2) with O_CLOEXEC. Returns 0 or the errno.
int cal_pipe(int fds[2]);

/// Creates two connected stream sockets (CLOEXEC). Returns 0 or the errno. The first one blocks for at most `seconds`.
int cal_socket_pair(int fds[2], int seconds);

/// Sends all bytes, at least one, and at most 8 descriptors with the first byte (SCM_RIGHTS). Blocks if
/// it `waits`.
///
/// Returns 0 or the errno: EPIPE if no receiver is left (without SIGPIPE), EAGAIN if the receiver does not read in
/// time.
int cal_send_with_descriptors(
    int socket, const void *bytes, size_t size, const int *descriptors, size_t count, int waits);

/// Receives exactly `size` bytes, and a descriptor (CLOEXEC) if one comes with them, otherwise -1. Blocks.
///
/// Returns 0 or the errno: EPIPE at the end, EAGAIN if not all bytes arrive in time.
int cal_receive_with_descriptor(int socket, void *bytes, size_t size, int *descriptor);

/// Stores the user of the process at the other end of a connected Unix socket, as of the connect. Returns 0 or the
/// errno.
int cal_peer_user(int socket, uint32_t *user);

/// Accepts the next connection of a listening socket. Returns a descriptor (CLOEXEC, non-blocking) or a negative errno.
int cal_accept(int socket);

/// Sends one byte without blocking. Returns 0 or the errno.
int cal_send_byte(int socket, uint8_t byte);

/// Calls recv(2) without blocking. Returns the number of bytes, 0 at the end, or a negative errno: -EAGAIN if there is
/// no data.
int64_t cal_receive(int socket, void *buffer, size_t size);

/// Returns whether nothing more can be received, since the other end is closed.
int cal_has_ended(int socket);

enum { CAL_COUNTERS = 1 << 16 };

/// Creates `CAL_COUNTERS` counters that other processes increment, in shared memory that cannot be truncated. Returns
/// NULL and sets errno if there is no memory. `fd` (CLOEXEC) is for the other processes; the caller closes it.
uint32_t *cal_make_counters(int *fd);
uint32_t cal_read_counter(const uint32_t *counter);
void cal_drop_counters(uint32_t *counters);

/// Sends a signal to the process with that id if it is a child of this one. Returns 0 or the errno.
int cal_signal_child(int pid, int signal);

/// Makes this process the parent of its descendants that lose theirs (PR_SET_CHILD_SUBREAPER). Returns 0 or the errno.
int cal_become_subreaper(void);

/// Creates a counter descriptor (CLOEXEC, non-blocking) that wakes a poll. Returns a negative errno on failure.
int cal_eventfd(void);

/// Shares the blocks of `source` with `destination` (FICLONE). Returns 0 or the errno.
int cal_clone(int source, int destination);

/// Like poll(2), with a timeout in nanoseconds; a negative value means no timeout. Returns a negative errno on failure.
struct pollfd;
int cal_poll(struct pollfd *fds, unsigned long count, int64_t nanoseconds);

/// Wakes the thread that sleeps on the word, or its next sleep ends at once.
void cal_signal(uint32_t *word);

/// Sleeps until the word is signalled, or for the time; a negative value means no limit. It may also return earlier.
///
/// Only one thread may sleep on a word, which is 0 at first.
void cal_sleep(uint32_t *word, int64_t nanoseconds);

/// Names the calling thread for ps, top and debuggers. The name is cut at 15 bytes.
void cal_name_thread(const char *name);

/// Raises the priority of the calling thread, if that is permitted. Returns 0 or the errno.
int cal_hurry_thread(void);

/// Returns the ABI version of Landlock, which restricts the files that a process can access, or a negative errno
/// without it.
int cal_landlock_version(void);

/// Creates a Landlock ruleset that denies a process all files, and all network access unless `has_network` is set.
/// Returns a descriptor (CLOEXEC) or a negative errno.
int cal_make_ruleset(int has_network);

/// Access rights to a file, or to everything below a directory.
enum cal_access { CAL_ACCESS_READ = 1, CAL_ACCESS_EXECUTE = 2, CAL_ACCESS_WRITE = 4 };

/// Adds rights to the open file or directory to the ruleset. Returns 0 or the errno.
int cal_allow_access(int ruleset, int file, unsigned int access);

/// Whether the kernel can refuse system calls of a process by a filter, and `alight-launch` has a filter for this
/// processor.
int cal_can_filter_calls(void);

/// Raises the soft limit of open descriptors to the hard one, and stores the former soft limit. Returns 0 or the errno.
int cal_raise_descriptor_limit(uint64_t *former);

/// Creates an epoll instance (CLOEXEC). Returns a descriptor or a negative errno.
int cal_make_epoll(void);

/// How a descriptor is watched: whenever it becomes writable; whenever something arrives.
enum cal_readiness { CAL_WRITABLE, CAL_RECEIVES };

/// Watches a descriptor until it is closed. Returns 0 or the errno.
int cal_watch(int epoll, int fd, enum cal_readiness what, uint64_t key);

/// Waits for descriptors, of which each event reaches one waiting thread. Stores the keys of at most `count` of those that
/// are ready, and returns their number.
int cal_await(int epoll, uint64_t *keys, int count);

/// Creates a timer (CLOEXEC) that never expires yet. Returns a descriptor or a negative errno.
int cal_make_timer(void);

/// Makes the timer expire once, after this time, which includes time in suspension. Returns 0 or the errno.
int cal_set_timer(int timer, int64_t nanoseconds);

// Operations in open directories, by descriptors and single names, so that no other process can substitute a directory.

/// The kinds of open: a directory to work in (O_PATH), an entry to inspect (O_PATH, a link itself), a file to read, the
/// target of a path of any type (O_PATH), or a directory to list, optionally without changing its access time.
enum cal_opening {
    CAL_OPEN_DIRECTORY,
    CAL_OPEN_ENTRY,
    CAL_OPEN_READING,
    CAL_OPEN_TARGET,
    CAL_OPEN_LISTING,
    CAL_OPEN_LISTING_QUIETLY,
};

/// Whether this process is root, so that links of other users could misuse its rights. False in a user namespace where
/// the owners of files are unknown.
int cal_is_distrustful(void);

/// Opens a relative path beneath the open directory. Returns a descriptor (CLOEXEC) or a negative errno.
///
/// With `follows`, links are followed as long as they stay beneath the directory. Fails with EXDEV if a link leads out,
/// and with ELOOP for a link that is not followed. Root follows only links that belong to root, in directories where no
/// other user can replace them.
int cal_open_beneath(int directory, const char *path, enum cal_opening what, int follows);

/// Like `cal_open_beneath`, name by name: the fallback without openat2(2).
int cal_open_beneath_by_names(int directory, const char *path, enum cal_opening what, int follows);

/// Opens a directory by its absolute path. Returns a descriptor or a negative errno. Links are followed, by root with
/// the restrictions of `cal_open_beneath`.
int cal_open_root(const char *path);

/// Opens a directory beneath an open root for listing, and stores its device. Returns a descriptor or a negative errno.
///
/// The access time of the directory does not change where that is possible. No link below the root is followed.
int cal_open_listing(int root, const char *path, uint64_t *device);

/// Gives the calling thread a working directory of its own, if the kernel allows that, for `cal_watch_open`.
void cal_own_working_directory(void);

/// Leaves the directory that the thread watched last, which prevents its file system from being unmounted.
void cal_leave_working_directory(void);

/// Calls inotify_add_watch(2) for an open directory. Returns the watch descriptor or a negative errno.
int cal_watch_open(int inotify, int directory, uint32_t mask);

/// Like `cal_open_root`, for a target of any type.
int cal_open_target(const char *path);

/// Opens a name in the directory without following a link: a link is opened itself, or an error. Returns a descriptor
/// or a negative errno.
int cal_open_entry(int directory, const char *name, enum cal_opening what);

/// Opens (O_PATH) a directory in the open one, without following a link, if nothing is mounted there. Returns a
/// descriptor or a negative errno: -EXDEV if something is mounted.
int cal_open_unmounted(int directory, const char *name);

/// Like `cal_open_unmounted`, by comparing mount ids: the fallback without openat2(2). Returns -EXDEV also if the ids
/// are unknown.
int cal_open_unmounted_by_ids(int directory, const char *name);

/// The treatment of an existing target of a rename.
enum cal_renaming { CAL_RENAME_REPLACING, CAL_RENAME_NEW, CAL_RENAME_EXCHANGING };

/// Calls renameat2(2). Returns 0 or the errno.
int cal_rename(int from_directory, const char *from, int to_directory, const char *to, enum cal_renaming how);

/// Opens a file without a name in the directory for reading and writing. Returns a descriptor or a negative errno.
int cal_open_unnamed_in(int directory, unsigned int mode);

/// Links the open file into the directory under a name that does not exist yet. Returns 0 or the errno.
int cal_link_descriptor_in(int descriptor, int directory, const char *name);

/// Reads the path of the open file from /proc. Returns its length or a negative errno.
int64_t cal_descriptor_path(int descriptor, char *path, size_t capacity);

/// Changes the mode of the open file, also through an O_PATH descriptor. Returns 0 or the errno.
int cal_change_mode(int descriptor, unsigned int mode);

/// Changes the owner, also through an O_PATH descriptor. An id with all bits set stays unchanged. Returns 0 or the
/// errno.
int cal_change_owner(int descriptor, unsigned int user, unsigned int group);

/// Sets the times, also through an O_PATH descriptor. Each is in seconds and nanoseconds, or left unchanged. Returns 0
/// or the errno.
struct cal_time {
    int64_t seconds;
    uint32_t nanoseconds;
    int is_left;
};
int cal_change_times(int descriptor, struct cal_time accessed, struct cal_time modified);

/// Calls copy_file_range(2) at these offsets. Returns the number of bytes copied, 0 at the end, or a negative errno.
int64_t cal_copy_range_at(int source, int destination, int64_t offset, size_t count);

/// Returns the offset of the next data, or of the next hole, at or after `offset`, or a negative errno: -ENXIO after
/// the last data.
int64_t cal_seek_data(int descriptor, int64_t offset);
int64_t cal_seek_hole(int descriptor, int64_t offset);

/// Whether it is certain that a name in an open directory has no extended attributes; a final link is not followed.
int cal_has_no_attributes(int directory, const char *name);

/// Lists the names of the open file's extended attributes, each with its NUL byte. Returns their length or a negative
/// errno. A capacity of 0 queries the length. The descriptor may be an O_PATH descriptor.
int64_t cal_list_open_attributes(int descriptor, char *names, size_t capacity);
int64_t cal_read_open_attribute(int descriptor, const char *name, void *value, size_t capacity);
int cal_set_open_attribute(int descriptor, const char *name, const void *value, size_t size);

/// Starts writing a written range to disk without waiting: sync_file_range(2). Does nothing where that is not
/// supported.
void cal_start_writeback(int descriptor, int64_t offset, int64_t count);

/// Flushes the file system of the open file. Returns 0 or the errno.
int cal_sync_file_system(int descriptor);

// The processes that change files: fanotify(7). A directory is identified by its key: the id of its file system, and
// its handle.

/// The capacity for the key of any directory.
#define CAL_DIRECTORY_KEY_SIZE 160

/// One event: a name in a directory, and the change to it. The pointers point into the buffer.
struct cal_fanotify_event {
    int32_t pid;
    /// The queue was full, and events are missing.
    int is_overflow;
    /// The file was written and closed, created, linked, or renamed to this name.
    int is_content;
    /// The file was deleted, or renamed to another name.
    int is_removal;
    int is_attributes;
    /// A directory was renamed to or from this name.
    int is_directory_move;
    const uint8_t *directory_key;
    size_t directory_key_length;
    const char *name;
    size_t name_length;
};

/// Opens a queue (CLOEXEC, non-blocking) of writes, renames and deletions. Returns a negative errno on failure.
int cal_fanotify_open(int is_unlimited);

/// Adds or removes a mark for the open directory or its whole file system. Returns 0 or the errno.
int cal_fanotify_mark(int fd, int directory, int is_file_system, int is_removal);

/// Parses the next event of the bytes read from the queue. Returns 0 when there are no more.
int cal_fanotify_next(const void *buffer, size_t size, size_t *offset, struct cal_fanotify_event *out);

/// Stores the key of an open directory. Returns its length or a negative errno. The id of the file system comes first.
int64_t cal_directory_key_descriptor(int directory, uint8_t *key);

/// Opens (O_PATH, CLOEXEC) the directory with that key, as seen through the mount of another directory. Returns a
/// negative errno on failure.
int cal_open_key(int mount, const uint8_t *key, size_t length);

/// The metadata of a process from /proc. Missing values have a negative length, or a flag of 0.
struct cal_process {
    char name[64];
    int64_t name_length;
    char executable[4096];
    int64_t executable_length;
    uint32_t user;
    int has_user;
};
void cal_read_process(int pid, struct cal_process *out);

// Datagrams to sockets of the system. An address is a path, or an abstract address with a leading '@'.

/// Creates a socket (CLOEXEC) for sending datagrams. Returns a negative errno on failure.
int cal_datagram_socket(void);

/// Sends the bytes in one datagram. Returns 0 or the errno: EAGAIN if the receiver's queue is full.
int cal_send_datagram(int descriptor, const char *path, const void *bytes, size_t length);

#endif
