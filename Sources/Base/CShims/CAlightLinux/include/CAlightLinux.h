// Linux calls that Swift's Glibc module lacks, each as one plain function.
//
// This header includes nothing that the Glibc module has: a second copy of a
// glibc header under _GNU_SOURCE would define its types twice.
#ifndef CALIGHT_LINUX_H
#define CALIGHT_LINUX_H

#include <stddef.h>
#include <stdint.h>

/// What statx(2) says of a path, without following a final symbolic link.
struct cal_stat {
    uint32_t device_major, device_minor;
    uint64_t inode;
    uint64_t size;
    /// The id of the mount, 0 when the kernel does not tell.
    uint64_t mount;
    uint32_t mode, uid, gid, nlink;
    int64_t mtime_seconds, ctime_seconds, btime_seconds;
    uint32_t mtime_nanoseconds, ctime_nanoseconds, btime_nanoseconds;
    int has_btime;
};

/// Fills `out`; 0, or the errno.
int cal_stat_path(const char *path, struct cal_stat *out);

/// The same for an open descriptor.
int cal_stat_descriptor(int fd, struct cal_stat *out);

/// The same for an entry of an open folder, following a link if asked to.
int cal_stat_entry(int directory, const char *name, int follow, struct cal_stat *out);
/// The entries of an open folder as getdents64(2) gives them: bytes filled, 0 at the end, or a negative errno.
int64_t cal_read_entries(int folder, void *buffer, size_t size);

/// The type of the file system that holds the open file, as statfs(2) numbers it; 0, or the errno.
int cal_file_system(int fd, uint64_t *type);

/// Has memory that was needed for a while given back to the system, as far as the C library can do that.
///
/// Large tables are apart from the heap for good, and few threads have a heap of
/// their own. To be called before anything else asks for memory.
void cal_keep_heap_small(void);

/// Whether a process can still write to the regular file at a path from an open folder: 0 when a
/// read lease could be taken (and was dropped at once), so nobody has it open
/// for writing or mapped writable; EAGAIN when somebody has; another errno when
/// the question has no answer here (EACCES: not the owner; EINVAL: a file system
/// without leases).
int cal_probe_entry_writers(int directory, const char *name);

/// Whether the kernel grants leases on files of other users: this thread has CAP_LEASE, see capabilities(7).
int cal_may_lease_any_file(void);

/// Whether a process holds a write lock on the regular file, by flock(2) or
/// fcntl(2): 0 when nobody does, EAGAIN when somebody does, another errno when
/// the question has no answer. A shared flock is held for a moment.
int cal_probe_locks(int directory, const char *name);

/// The value of an extended attribute, without following a final link: its length in bytes, or a negative errno.
int64_t cal_read_attribute(const char *path, const char *name, void *value, size_t capacity);

/// Removes one of an open file; 0, or the errno.
int cal_remove_open_attribute(int fd, const char *name);

/// Opens the folder, its path relative to the open one, without following any
/// symbolic link on the way: the descriptor (CLOEXEC), or a negative errno.
int cal_open_folder(int directory, const char *path);

/// pipe2 with O_CLOEXEC; 0, or the errno.
int cal_pipe(int fds[2]);

/// Two connected stream sockets (CLOEXEC); 0, or the errno. A send to the first one blocks for so many seconds at most.
int cal_socket_pair(int fds[2], int seconds);

/// Sends all of the bytes, at least one, and with the first of them descriptors (SCM_RIGHTS), at most 8; blocks. 0, or
/// the errno: EPIPE when there is nobody who could receive (no SIGPIPE), EAGAIN when nobody does in time.
int cal_send_with_descriptors(int socket, const void *bytes, size_t size, const int *descriptors, size_t count);

/// The user whose process is at the other end of a connected Unix socket, as it was when it connected; 0, or the errno.
int cal_peer_user(int socket, uint32_t *user);

/// Takes the next connection of a listening socket: a descriptor (CLOEXEC, non-blocking), or a negative errno.
int cal_accept(int socket);

/// Sends one byte without blocking; 0, or the errno.
int cal_send_byte(int socket, uint8_t byte);

/// recv(2) without blocking: bytes received, 0 at the end, or a negative errno, -EAGAIN when nothing is there.
int64_t cal_receive(int socket, void *buffer, size_t size);

/// A number that another process counts up, in memory that both share and nobody can cut off; NULL, with errno, when
/// there is no room. `fd` (CLOEXEC) is for that process, and the caller's to close.
uint32_t *cal_make_counter(int *fd);
uint32_t cal_read_counter(const uint32_t *counter);
void cal_drop_counter(uint32_t *counter);

/// Sends a signal to the process of that id if it is a child of this one; 0, or the errno.
int cal_signal_child(int pid, int signal);

/// Has processes that lose their parent become children of this one, if they descend from it; 0, or the errno.
int cal_become_subreaper(void);

/// A counter descriptor (CLOEXEC, non-blocking) to wake a poll; negative errno on failure.
int cal_eventfd(void);

/// renameat2 with RENAME_EXCHANGE on absolute paths; 0, or the errno.
int cal_rename_exchange(const char *one, const char *other);

/// Shares the blocks of `source` with `destination` (FICLONE); 0, or the errno.
int cal_clone(int source, int destination);

/// poll with a time-out in nanoseconds, negative for none; as poll(2), or a negative errno.
struct pollfd;
int cal_poll(struct pollfd *fds, unsigned long count, int64_t nanoseconds);

/// Names the calling thread for ps, top and debuggers; at most 15 bytes are kept.
void cal_name_thread(const char *name);

/// Lets the calling thread run before others, if that is allowed; 0, or the errno.
int cal_hurry_thread(void);

/// The version of the interface of Landlock, which confines processes to files; a negative errno when there is none.
int cal_landlock_version(void);

/// Makes a Landlock ruleset by which a process reaches no file, and no network unless it has that: a descriptor (CLOEXEC),
/// or a negative errno.
int cal_make_ruleset(int has_network);

/// What a process may do with a file, or with all that is below a directory.
enum cal_access { CAL_ACCESS_READ = 1, CAL_ACCESS_EXECUTE = 2, CAL_ACCESS_WRITE = 4 };

/// Adds to the ruleset what may be done with the open file or directory; 0, or the errno.
int cal_allow_access(int ruleset, int file, unsigned int access);

/// Whether system calls of a process can be refused by a filter, and `alight-launch` has one for this processor.
int cal_can_filter_calls(void);

/// The soft and hard limit of open descriptors; 0, or the errno.
int cal_limit_descriptors(uint64_t soft);

// Work in open folders: by their descriptors and single names, so that nobody can put another folder in between.

/// What is opened: a folder to work in (O_PATH), an entry to be looked at (O_PATH, a link itself), one to be read, whatever
/// the path leads to (O_PATH), or a folder to be listed, also without changing its time of access.
enum cal_opening {
    CAL_OPEN_FOLDER,
    CAL_OPEN_ENTRY,
    CAL_OPEN_READING,
    CAL_OPEN_TARGET,
    CAL_OPEN_LISTING,
    CAL_OPEN_LISTING_QUIETLY,
};

/// Whether this process is root, so that other users' links could turn its rights against it. Not in a user namespace
/// where the owners of files are unknown.
int cal_is_distrustful(void);

/// Opens the relative path beneath the open folder: the descriptor (CLOEXEC), or a negative errno.
///
/// Links on the way are followed if asked to and as long as they stay beneath; EXDEV when one leads out, ELOOP for one
/// that is not followed. Root follows only links that belong to root, in directories where no other user can replace them.
int cal_open_beneath(int folder, const char *path, enum cal_opening what, int follows);

/// The same name by name, as it is done without openat2(2).
int cal_open_beneath_by_names(int folder, const char *path, enum cal_opening what, int follows);

/// Opens a folder by its absolute path: the descriptor, or a negative errno. Links are followed, by root as above.
int cal_open_root(const char *path);

/// Opens a folder at the relative path beneath a root for listing, without changing its time of access where that is
/// possible, and gives the device that holds it: the descriptor, or a negative errno. The root is opened as above, and no
/// link below it is followed.
int cal_open_listing(const char *root, const char *path, uint64_t *device);

/// inotify_add_watch(2) for an open folder: the watch, or a negative errno.
int cal_watch_open(int inotify, int folder, uint32_t mask);

/// Opens in the same way whatever the path leads to.
int cal_open_target(const char *path);

/// Opens a name of the folder, a link itself or an error: the descriptor, or a negative errno.
int cal_open_entry(int folder, const char *name, enum cal_opening what);

/// Opens (O_PATH) a folder in the open one, no link, if nothing is mounted there: the descriptor, or a negative errno,
/// EXDEV when something is.
int cal_open_unmounted(int folder, const char *name);

/// The same by the ids of mounts, as it is done without openat2(2); EXDEV also when they are not known.
int cal_open_unmounted_by_ids(int folder, const char *name);

/// How a name is taken that something has.
enum cal_renaming { CAL_RENAME_REPLACING, CAL_RENAME_NEW, CAL_RENAME_EXCHANGING };

/// renameat2(2); 0, or the errno.
int cal_rename(int from_folder, const char *from, int to_folder, const char *to, enum cal_renaming how);

/// Opens a file without a name in the folder for reading and writing: a descriptor, or a negative errno.
int cal_open_unnamed_in(int folder, unsigned int mode);

/// Gives what is behind the descriptor a name in the folder that nothing has; 0, or the errno.
int cal_link_descriptor_in(int descriptor, int folder, const char *name);

/// The path by which /proc knows the open file: its length, or a negative errno.
int64_t cal_descriptor_path(int descriptor, char *path, size_t capacity);

/// Changes the mode of what is behind the descriptor, also one for looking only; 0, or the errno.
int cal_change_mode(int descriptor, unsigned int mode);

/// Changes the owner likewise; all bits set for one that stays.
int cal_change_owner(int descriptor, unsigned int user, unsigned int group);

/// Sets the times likewise, each in seconds and nanoseconds, or left alone; 0, or the errno.
struct cal_time {
    int64_t seconds;
    uint32_t nanoseconds;
    int is_left;
};
int cal_change_times(int descriptor, struct cal_time accessed, struct cal_time modified);

/// copy_file_range(2) at these offsets: bytes copied, 0 at the end, or a negative errno.
int64_t cal_copy_range_at(int source, int destination, int64_t offset, size_t count);

/// Where data begins at or after the offset, or where the next hole does: a negative errno, ENXIO behind the last data.
int64_t cal_seek_data(int descriptor, int64_t offset);
int64_t cal_seek_hole(int descriptor, int64_t offset);

/// The names of the open file's extended attributes, each with its NUL: their length, or a negative errno. No capacity
/// asks for the length. The descriptor may be one for looking only.
int64_t cal_list_open_attributes(int descriptor, char *names, size_t capacity);
int64_t cal_read_open_attribute(int descriptor, const char *name, void *value, size_t capacity);
int cal_set_open_attribute(int descriptor, const char *name, const void *value, size_t size);

/// Lets the disk begin with a range that has been written, and doesn't wait: sync_file_range(2). Where that can't be
/// done nothing happens.
void cal_begin_writing(int descriptor, int64_t offset, int64_t count);

/// Flushes the file system of the open file; 0, or the errno.
int cal_sync_file_system(int descriptor);

// Who does what to files: fanotify(7). A folder is told by its key, its file system's id and its handle.

/// Room for the key of any folder.
#define CAL_FOLDER_KEY_SIZE 160

/// One event: a name in a folder, and what was done to it. The pointers are into the buffer.
struct cal_fanotify_event {
    int32_t pid;
    /// The queue was full: events are missing.
    int is_overflow;
    /// It was written to and closed, made, linked, or renamed to this name.
    int is_content;
    /// It was deleted, or renamed to another name.
    int is_removal;
    int is_attributes;
    /// It is a folder that has, or had, another name.
    int is_folder_move;
    const uint8_t *folder;
    size_t folder_length;
    const char *name;
    size_t name_length;
};

/// Opens a queue (CLOEXEC, non-blocking) of who writes, renames and deletes; a negative errno on failure.
int cal_fanotify_open(int is_unlimited);

/// Asks for what happens in the open folder, or on its whole file system, or no more for it; 0, or the errno.
int cal_fanotify_mark(int fd, int folder, int is_file_system, int is_removal);

/// Takes the next event of what was read from the queue; 0 when there is none.
int cal_fanotify_next(const void *buffer, size_t size, size_t *offset, struct cal_fanotify_event *out);

/// The key of an open folder: its length, or a negative errno. The file system's id comes first.
int64_t cal_folder_key_descriptor(int folder, uint8_t *key);

/// Opens (O_PATH, CLOEXEC) the folder of that key as it is seen through the mount of another one; a negative errno.
int cal_open_key(int mount, const uint8_t *key, size_t length);

/// What /proc says of a process; lengths are negative, or flags 0, for what it does not.
struct cal_process {
    char name[64];
    int64_t name_length;
    char executable[4096];
    int64_t executable_length;
    uint32_t user;
    int has_user;
};
void cal_process_facts(int pid, struct cal_process *out);

// Datagrams to sockets of the system: paths, or with a leading '@' abstract addresses.

/// Makes a socket (CLOEXEC) that datagrams are sent from; a negative errno on failure.
int cal_datagram_socket(void);

/// Sends the bytes in one datagram; 0, or the errno: EAGAIN when the receiver is behind.
int cal_send_datagram(int descriptor, const char *path, const void *bytes, size_t length);

#endif
