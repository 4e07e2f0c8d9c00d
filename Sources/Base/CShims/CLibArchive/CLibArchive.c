#define _GNU_SOURCE
#include "CLibArchive.h"
#include "CSharedLibrary.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#define CALLS(X)                                                                                                       \
    X(archive_entry_clear)                                                                                             \
    X(archive_entry_free)                                                                                              \
    X(archive_entry_hardlink)                                                                                          \
    X(archive_entry_is_encrypted)                                                                                      \
    X(archive_entry_mode)                                                                                              \
    X(archive_entry_mtime)                                                                                             \
    X(archive_entry_mtime_is_set)                                                                                      \
    X(archive_entry_mtime_nsec)                                                                                        \
    X(archive_entry_new)                                                                                               \
    X(archive_entry_pathname)                                                                                          \
    X(archive_entry_set_mode)                                                                                          \
    X(archive_entry_set_mtime)                                                                                         \
    X(archive_entry_set_pathname)                                                                                      \
    X(archive_entry_set_size)                                                                                          \
    X(archive_entry_set_symlink)                                                                                       \
    X(archive_entry_size)                                                                                              \
    X(archive_entry_size_is_set)                                                                                       \
    X(archive_entry_symlink)                                                                                           \
    X(archive_errno)                                                                                                   \
    X(archive_error_string)                                                                                            \
    X(archive_filter_bytes)                                                                                            \
    X(archive_filter_count)                                                                                            \
    X(archive_format)                                                                                                  \
    X(archive_read_data_block)                                                                                         \
    X(archive_read_data_skip)                                                                                          \
    X(archive_read_free)                                                                                               \
    X(archive_read_new)                                                                                                \
    X(archive_read_next_header)                                                                                        \
    X(archive_read_open1)                                                                                              \
    X(archive_read_set_callback_data)                                                                                  \
    X(archive_read_set_read_callback)                                                                                  \
    X(archive_read_set_seek_callback)                                                                                  \
    X(archive_read_set_skip_callback)                                                                                  \
    X(archive_read_support_filter_bzip2)                                                                               \
    X(archive_read_support_filter_gzip)                                                                                \
    X(archive_read_support_filter_xz)                                                                                  \
    X(archive_read_support_filter_zstd)                                                                                \
    X(archive_read_support_format_7zip)                                                                                \
    X(archive_read_support_format_cpio)                                                                                \
    X(archive_read_support_format_raw)                                                                                 \
    X(archive_read_support_format_tar)                                                                                 \
    X(archive_read_support_format_zip_seekable)                                                                        \
    X(archive_write_add_filter_bzip2)                                                                                  \
    X(archive_write_add_filter_gzip)                                                                                   \
    X(archive_write_add_filter_xz)                                                                                     \
    X(archive_write_add_filter_zstd)                                                                                   \
    X(archive_write_close)                                                                                             \
    X(archive_write_data)                                                                                              \
    X(archive_write_fail)                                                                                              \
    X(archive_write_free)                                                                                              \
    X(archive_write_header)                                                                                            \
    X(archive_write_new)                                                                                               \
    X(archive_write_open_fd)                                                                                           \
    X(archive_write_set_bytes_in_last_block)                                                                           \
    X(archive_write_set_filter_option)                                                                                 \
    X(archive_write_set_format_pax_restricted)                                                                         \
    X(archive_write_set_format_zip)

static struct { CALLS(CSL_POINTER) } calls;
static const struct csl_function functions[] = {CALLS(CSL_FUNCTION)};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char problem[256];
/// The locale for names, which are UTF-8 bytes in any locale of the program.
static locale_t utf8;

static void load(void) {
    csl_load("libarchive.so.13", functions, sizeof functions / sizeof *functions, problem, sizeof problem);
    if (problem[0]) return;
    utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

const char *cla_load(void) {
    pthread_once(&once, load);
    return problem[0] ? problem : NULL;
}

/// Sets the thread's locale, which the library uses to decode names, and returns the previous one for `leave`.
static locale_t enter(void) { return utf8 ? uselocale(utf8) : (locale_t)0; }
static void leave(locale_t former) {
    if (utf8) uselocale(former);
}

/// Whether a name is valid in the current locale.
static int is_text(const char *name) {
    mbstate_t state;
    memset(&state, 0, sizeof state);
    return mbsrtowcs(NULL, &name, 0, &state) != (size_t)-1;
}

// Writing

struct cla_writer {
    enum cla_format format;
    struct archive *archive;
    struct archive_entry *entry;
    int is_finished;
};

struct cla_writer *cla_writer_open(int fd, enum cla_format format, enum cla_filter filter) {
    struct cla_writer *writer = calloc(1, sizeof *writer);
    if (!writer) return NULL;
    writer->format = format;
    locale_t former = enter();
    writer->archive = calls.archive_write_new();
    writer->entry = calls.archive_entry_new();
    int result = writer->archive && writer->entry ? ARCHIVE_OK : ARCHIVE_FATAL;
    if (result == ARCHIVE_OK) {
        switch (filter) {
        case CLA_PLAIN: break;
        case CLA_GZIP:
            result = calls.archive_write_add_filter_gzip(writer->archive);
            // The same files make the same archive at any time.
            calls.archive_write_set_filter_option(writer->archive, "gzip", "timestamp", NULL);
            break;
        case CLA_XZ: result = calls.archive_write_add_filter_xz(writer->archive); break;
        case CLA_ZSTD: result = calls.archive_write_add_filter_zstd(writer->archive); break;
        case CLA_BZIP2: result = calls.archive_write_add_filter_bzip2(writer->archive); break;
        }
    }
    if (result >= ARCHIVE_WARN)
        result = format == CLA_ZIP ? calls.archive_write_set_format_zip(writer->archive)
                                   : calls.archive_write_set_format_pax_restricted(writer->archive);
    if (result >= ARCHIVE_WARN) {
        calls.archive_write_set_bytes_in_last_block(writer->archive, 1);
        result = calls.archive_write_open_fd(writer->archive, fd);
    }
    leave(former);
    if (result < ARCHIVE_WARN) {
        cla_writer_free(writer);
        return NULL;
    }
    return writer;
}

int cla_writer_add(struct cla_writer *writer, const struct cla_entry *entry) {
    locale_t former = enter();
    // A zip has a UTF-8 flag for each name, and libarchive sets it by the locale, not by the name.
    if (writer->format == CLA_ZIP && !is_text(entry->name)) leave(former);
    struct archive_entry *out = calls.archive_entry_clear(writer->entry);
    calls.archive_entry_set_pathname(out, entry->name);
    calls.archive_entry_set_mode(out, entry->mode);
    calls.archive_entry_set_mtime(out, entry->mtime_seconds, entry->mtime_nanoseconds);
    if (entry->symlink) calls.archive_entry_set_symlink(out, entry->symlink);
    calls.archive_entry_set_size(out, entry->size);
    int result = calls.archive_write_header(writer->archive, out);
    leave(former);
    // A warning means that a name is not UTF-8. Its bytes are written unchanged.
    return result >= ARCHIVE_WARN ? 0 : -1;
}

int cla_writer_data(struct cla_writer *writer, const void *bytes, size_t count) {
    const char *next = bytes;
    while (count > 0) {
        la_ssize_t written = calls.archive_write_data(writer->archive, next, count);
        if (written <= 0) return -1;
        next += written;
        count -= (size_t)written;
    }
    return 0;
}

int cla_writer_finish(struct cla_writer *writer) {
    locale_t former = enter();
    writer->is_finished = 1;
    int result = calls.archive_write_close(writer->archive);
    leave(former);
    return result >= ARCHIVE_WARN ? 0 : -1;
}

const char *cla_writer_error(struct cla_writer *writer) {
    const char *text = calls.archive_error_string(writer->archive);
    return text ? text : "it can't be written";
}

int cla_writer_errno(struct cla_writer *writer) { return calls.archive_errno(writer->archive); }

void cla_writer_free(struct cla_writer *writer) {
    locale_t former = enter();
    // Without this, freeing would write zeros up to the declared size of the last entry.
    if (writer->archive && !writer->is_finished) calls.archive_write_fail(writer->archive);
    if (writer->archive) calls.archive_write_free(writer->archive);
    if (writer->entry) calls.archive_entry_free(writer->entry);
    leave(former);
    free(writer);
}

// Reading

struct cla_reader {
    struct archive *archive;
    /// The decompressed bytes of a compressed file as the only entry; NULL for a file that is not compressed.
    struct archive *stream;
    int fd;
    /// Whether the library expects a header, not the content of an entry.
    int is_at_header;
    /// Whether an entry was read, so that its content comes next.
    int has_entry;
    /// Whether a compressed file has no content.
    int is_empty;
    cla_progress progress;
    void *context;
    int error;
    char block[64 << 10];
};

static la_ssize_t read_file(struct archive *archive, void *data, const void **block) {
    struct cla_reader *reader = data;
    if (!reader->progress(reader->context, calls.archive_filter_bytes(archive, 0))) return ARCHIVE_FATAL;
    ssize_t count;
    do count = read(reader->fd, reader->block, sizeof reader->block);
    while (count < 0 && errno == EINTR);
    *block = reader->block;
    if (count < 0) reader->error = errno;
    return count < 0 ? ARCHIVE_FATAL : count;
}

/// Returns the next decompressed bytes; 0 at the end.
static la_ssize_t read_stream(struct cla_reader *reader, const void **block) {
    size_t count = 0;
    la_int64_t offset;
    int result;
    do result = calls.archive_read_data_block(reader->stream, block, &count, &offset);
    while (result == ARCHIVE_OK && count == 0);
    if (result == ARCHIVE_EOF) return 0;
    return result == ARCHIVE_OK ? (la_ssize_t)count : ARCHIVE_FATAL;
}

static la_ssize_t read_block(struct archive *archive, void *data, const void **block) {
    // Not a valid header in any format, and the end of a sparse map.
    static const char no_header[512] = {1};
    struct cla_reader *reader = data;
    la_ssize_t count = reader->stream ? read_stream(reader, block) : read_file(archive, data, block);
    // The library takes the end of the file for the end of a tar, although the end marker is missing.
    if (count == 0 && reader->is_at_header
        && (calls.archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR) {
        *block = no_header;
        return sizeof no_header;
    }
    return count;
}

static la_int64_t skip(struct archive *archive, void *data, la_int64_t request) {
    (void)archive;
    struct cla_reader *reader = data;
    off_t before = lseek(reader->fd, 0, SEEK_CUR);
    off_t end = lseek(reader->fd, 0, SEEK_END);
    if (before < 0 || end < 0) return 0;
    // Not beyond the end: the file would seem to be longer than it is.
    off_t after = request > end - before ? end : before + request;
    if (lseek(reader->fd, after, SEEK_SET) < 0) return 0;
    return after - before;
}

static la_int64_t seek(struct archive *archive, void *data, la_int64_t offset, int whence) {
    (void)archive;
    struct cla_reader *reader = data;
    off_t position = lseek(reader->fd, offset, whence);
    return position < 0 ? ARCHIVE_FATAL : position;
}

/// Opens the decompressed bytes of the file. Returns 0 if there is no memory.
static int open_stream(struct cla_reader *reader) {
    struct archive *stream = calls.archive_read_new();
    if (!stream) return 0;
    // Excludes filters that start a program.
    calls.archive_read_support_filter_gzip(stream);
    calls.archive_read_support_filter_bzip2(stream);
    calls.archive_read_support_filter_xz(stream);
    calls.archive_read_support_filter_zstd(stream);
    calls.archive_read_support_format_raw(stream);
    calls.archive_read_set_callback_data(stream, reader);
    calls.archive_read_set_read_callback(stream, read_file);
    struct archive_entry *entry;
    int is_open =
        calls.archive_read_open1(stream) == ARCHIVE_OK && calls.archive_read_next_header(stream, &entry) == ARCHIVE_OK;
    const char *text = is_open ? NULL : calls.archive_error_string(stream);
    // The format of no bytes is unknown, and after any other error the number of filters is.
    int is_empty = text && strncmp(text, "Unrecognized", strlen("Unrecognized")) == 0;
    if (calls.archive_filter_count(stream) > 1 || (text && !is_empty)) {
        reader->is_empty = is_empty;
        reader->stream = stream;
        return 1;
    }
    calls.archive_read_free(stream);
    return lseek(reader->fd, 0, SEEK_SET) == 0;
}

/// Opens the entries. Returns 0 if there is no memory.
static int open_entries(struct cla_reader *reader) {
    struct archive *archive = reader->archive = calls.archive_read_new();
    if (!archive) return 0;
    // Excludes mtree, which refers to files of this machine, and a zip without its directory.
    calls.archive_read_support_format_tar(archive);
    calls.archive_read_support_format_cpio(archive);
    calls.archive_read_set_callback_data(archive, reader);
    calls.archive_read_set_read_callback(archive, read_block);
    if (!reader->stream) {
        calls.archive_read_support_format_zip_seekable(archive);
        calls.archive_read_support_format_7zip(archive);
        calls.archive_read_set_skip_callback(archive, skip);
        calls.archive_read_set_seek_callback(archive, seek);
    }
    // The first entry also reports errors of this call.
    calls.archive_read_open1(archive);
    return 1;
}

struct cla_reader *cla_reader_open(int fd, cla_progress progress, void *context) {
    struct cla_reader *reader = calloc(1, sizeof *reader);
    if (!reader) return NULL;
    reader->fd = fd;
    reader->progress = progress;
    reader->context = context;
    locale_t former = enter();
    int is_open = open_stream(reader) && open_entries(reader);
    leave(former);
    if (is_open) return reader;
    cla_reader_free(reader);
    return NULL;
}

/// Reads the rest of a compressed file, at whose end are its checksums. Returns 0 if it is damaged.
static int finish(struct cla_reader *reader) {
    const void *block;
    la_ssize_t count = 0;
    if (reader->stream) do count = read_stream(reader, &block);
        while (count > 0);
    return count == 0;
}

int cla_reader_next(struct cla_reader *reader, struct cla_entry *out) {
    struct archive_entry *entry;
    locale_t former = enter();
    // The rest of the last entry is no header.
    int result = reader->has_entry ? calls.archive_read_data_skip(reader->archive) : ARCHIVE_OK;
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN) {
        reader->is_at_header = 1;
        result = calls.archive_read_next_header(reader->archive, &entry);
        reader->is_at_header = 0;
    }
    reader->has_entry = result == ARCHIVE_OK || result == ARCHIVE_WARN;
    if (reader->has_entry) {
        memset(out, 0, sizeof *out);
        out->name = calls.archive_entry_pathname(entry);
        out->symlink = calls.archive_entry_symlink(entry);
        out->hardlink = calls.archive_entry_hardlink(entry);
        out->mode = calls.archive_entry_mode(entry);
        out->size = calls.archive_entry_size_is_set(entry) ? calls.archive_entry_size(entry) : -1;
        out->has_mtime = calls.archive_entry_mtime_is_set(entry);
        out->mtime_seconds = calls.archive_entry_mtime(entry);
        out->mtime_nanoseconds = (uint32_t)calls.archive_entry_mtime_nsec(entry);
        out->is_encrypted = calls.archive_entry_is_encrypted(entry);
        out->is_in_zip = (calls.archive_format(reader->archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP;
    }
    int is_end = result == ARCHIVE_EOF && finish(reader);
    leave(former);
    if (is_end) return 0;
    return reader->has_entry ? 1 : -1;
}

int cla_reader_data(struct cla_reader *reader, const void **bytes, size_t *count, int64_t *offset) {
    la_int64_t position = 0;
    int result = calls.archive_read_data_block(reader->archive, bytes, count, &position);
    *offset = position;
    if (result == ARCHIVE_EOF) return 0;
    // A warning here is a checksum mismatch.
    return result == ARCHIVE_OK ? 1 : -1;
}

const char *cla_reader_error(struct cla_reader *reader) {
    if (reader->stream && reader->is_empty) return "the compressed file is empty";
    const char *text = reader->stream ? calls.archive_error_string(reader->stream) : NULL;
    if (!text) text = calls.archive_error_string(reader->archive);
    return text ? text : "it ends too early";
}

int cla_reader_errno(struct cla_reader *reader) { return reader->error; }

void cla_reader_free(struct cla_reader *reader) {
    locale_t former = enter();
    if (reader->archive) calls.archive_read_free(reader->archive);
    if (reader->stream) calls.archive_read_free(reader->stream);
    leave(former);
    free(reader);
}
