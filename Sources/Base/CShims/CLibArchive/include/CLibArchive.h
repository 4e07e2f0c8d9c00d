// The part of libarchive that archive actions need, loaded on first use.
//
// Linking it and its dependencies would slow down every start of the program, even for users who have no archives.
#ifndef CLIB_ARCHIVE_H
#define CLIB_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

/// Loads the library. Returns NULL, or the reason for the failure. Callable on any thread, any number of times;
/// required before any other function.
const char *cla_load(void);

/// One entry. The strings of a read entry are valid until the next entry is read.
struct cla_entry {
    /// NULL if the name cannot be decoded.
    const char *name;
    /// The target of a symbolic link; NULL for other types.
    const char *symlink;
    /// The name of the entry that a hard link refers to; NULL for other types.
    const char *hardlink;
    /// Type and permissions, as in stat(2).
    uint32_t mode;
    /// Negative if the archive does not contain it.
    int64_t size;
    int64_t mtime_seconds;
    uint32_t mtime_nanoseconds;
    int has_mtime;
    int is_encrypted;
    int is_in_zip;
};

enum cla_format { CLA_TAR, CLA_ZIP };
enum cla_filter { CLA_PLAIN, CLA_GZIP, CLA_XZ, CLA_ZSTD, CLA_BZIP2 };

struct cla_writer;

/// Starts an archive in an open file. Returns NULL if there is no memory.
struct cla_writer *cla_writer_open(int fd, enum cla_format format, enum cla_filter filter);
/// Each of these returns 0, or -1 with an error that cla_writer_error returns.
int cla_writer_add(struct cla_writer *writer, const struct cla_entry *entry);
int cla_writer_data(struct cla_writer *writer, const void *bytes, size_t count);
int cla_writer_finish(struct cla_writer *writer);
/// The last error.
const char *cla_writer_error(struct cla_writer *writer);
int cla_writer_errno(struct cla_writer *writer);
void cla_writer_free(struct cla_writer *writer);

struct cla_reader;

/// Called with the number of bytes unpacked so far, before each block is read. Returning 0 stops reading with an error.
typedef int (*cla_progress)(void *context, int64_t unpacked);

/// Opens an archive in an open file for reading, from its beginning. Returns NULL if there is no memory.
struct cla_reader *cla_reader_open(int fd, cla_progress progress, void *context);
/// Reads the next entry. Returns 1 with an entry, 0 at the end of a complete archive, or -1 with an error that cla_reader_error returns.
int cla_reader_next(struct cla_reader *reader, struct cla_entry *out);
/// Reads the next block of the entry's content, and its offset. Returns 1 with a block, 0 at the end, or -1 with an
/// error.
int cla_reader_data(struct cla_reader *reader, const void **bytes, size_t *count, int64_t *offset);
/// The last error.
const char *cla_reader_error(struct cla_reader *reader);
/// Returns the errno of the read(2) that failed; 0 if none has.
int cla_reader_errno(struct cla_reader *reader);
void cla_reader_free(struct cla_reader *reader);

#endif
