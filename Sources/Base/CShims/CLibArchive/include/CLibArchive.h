// The part of libarchive that archives need, loaded when one is first asked for.
//
// Linked, it and what it brings along would make every start of the program slower, also of
// those who never see an archive.
#ifndef CLIB_ARCHIVE_H
#define CLIB_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

/// Loads the library: NULL, or why that can't be done. Any thread, any number of times; the others need it first.
const char *cla_load(void);

/// One entry. The texts of one that was read are valid until the next one is asked for.
struct cla_entry {
    /// NULL when it has a name that can't be read.
    const char *name;
    /// Where a symbolic link leads; NULL for anything else.
    const char *symlink;
    /// The name of the entry that a hard link is the same file as; NULL for anything else.
    const char *hardlink;
    /// Type and permissions, as stat(2) has them.
    uint32_t mode;
    /// Negative when the archive does not say.
    int64_t size;
    int64_t mtime_seconds;
    uint32_t mtime_nanoseconds;
    int has_mtime;
    int is_encrypted;
};

enum cla_format { CLA_TAR, CLA_ZIP };
enum cla_filter { CLA_PLAIN, CLA_GZIP, CLA_XZ, CLA_ZSTD, CLA_BZIP2 };

struct cla_writer;

/// Begins an archive in an open file; NULL when there is no memory.
struct cla_writer *cla_writer_open(int fd, enum cla_format format, enum cla_filter filter);
/// Each of these: 0, or -1 with an error to be asked for.
int cla_writer_add(struct cla_writer *writer, const struct cla_entry *entry);
int cla_writer_data(struct cla_writer *writer, const void *bytes, size_t count);
int cla_writer_finish(struct cla_writer *writer);
/// The last error, and its errno or 0.
const char *cla_writer_error(struct cla_writer *writer);
int cla_writer_errno(struct cla_writer *writer);
void cla_writer_free(struct cla_writer *writer);

struct cla_reader;

/// Asked before each block that is read; 0 ends the reading as an error. Told the bytes unpacked so far.
typedef int (*cla_goes_on)(void *context, int64_t unpacked);

/// Begins to read an archive from an open file; NULL when there is no memory.
struct cla_reader *cla_reader_open(int fd, cla_goes_on goes_on, void *context);
/// 1 with an entry, 0 at the end, -1 with an error to be asked for.
int cla_reader_next(struct cla_reader *reader, struct cla_entry *out);
/// The next block of the entry's content and its place in it: 1, 0 at the end, -1 with an error.
int cla_reader_data(struct cla_reader *reader, const void **bytes, size_t *count, int64_t *offset);
/// How many bytes have been unpacked, headers too.
int64_t cla_reader_unpacked(struct cla_reader *reader);
/// The last error, and its errno or 0.
const char *cla_reader_error(struct cla_reader *reader);
int cla_reader_errno(struct cla_reader *reader);
void cla_reader_free(struct cla_reader *reader);

#endif
