// The part of libmicrohttpd that the control API needs, loaded when somebody connects for the first time.
//
// Linked, it and the TLS libraries that it brings along would make every start of the program slower.
#ifndef CLIB_MICRO_HTTPD_H
#define CLIB_MICRO_HTTPD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// Loads the library: NULL, or why that can't be done. Any thread, any number of times; the others need it first.
const char *chm_load(void);

struct chm_server;
struct chm_request;

/// What a server tells, on the thread that calls chm_run or chm_add.
struct chm_callbacks {
    void *context;
    /// A request has arrived with its body; it waits for chm_answer or chm_stream, which may be called later.
    void (*arrived)(void *context, struct chm_request *request);
    /// A request is over, whatever became of it; it must not be used any more.
    void (*ended)(void *context, struct chm_request *request, int descriptor);
    /// A connection was closed.
    void (*closed)(void *context, int descriptor);
    /// The next bytes of a stream: their count, 0 when there are none at present, negative for its end.
    ssize_t (*more)(void *context, struct chm_request *request, char *buffer, size_t size);
};

/// Starts a server without a thread, a socket or a time limit of its own; NULL when that can't be done.
///
/// memory: bytes for the header of a request; body: most bytes of its body.
///
/// What the library can't read as a request it answers itself, in HTML that is the same for all, without a header of the
/// caller's, and closes the connection: a request line or a header line that is none, a version that is not HTTP/1, a
/// Content-Length that is no number, chunks that are none, a header that does not fit into the memory. It has no way to be
/// told what to say.
struct chm_server *chm_start(
    struct chm_callbacks callbacks, unsigned int connections, size_t memory, size_t body);
/// The descriptor that is readable when chm_run has something to do.
int chm_descriptor(struct chm_server *server);
/// Takes a connected socket over, which is closed in any case; 0, or -1.
int chm_add(struct chm_server *server, int descriptor);
/// Does what there is to do, without blocking.
void chm_run(struct chm_server *server);
/// Whether chm_run has something to do at once, whatever the descriptor says.
int chm_is_due(struct chm_server *server);
/// Ends it; every request must have been answered, and every stream ended.
void chm_stop(struct chm_server *server);

/// The connection's descriptor.
int chm_connection(struct chm_request *request);
const char *chm_method(struct chm_request *request);
/// HTTP/1.1 and the like.
const char *chm_version(struct chm_request *request);
/// How many bytes the request has before its body.
size_t chm_header_size(struct chm_request *request);
/// The target as it was sent: path and query, with their escapes.
const char *chm_target(struct chm_request *request);
/// The value of a header; NULL without one.
const char *chm_header(struct chm_request *request, const char *name);
/// How many headers of that name there are.
int chm_header_count(struct chm_request *request, const char *name);
/// The body; its size is larger than the most bytes when it was too long, and then it is not whole.
const void *chm_body(struct chm_request *request, size_t *size);

/// Prepares a header line of the answer.
void chm_add_header(struct chm_request *request, const char *name, const char *value);
/// Answers; the bytes are copied.
void chm_answer(struct chm_request *request, unsigned int status, const void *body, size_t size);
/// Answers with a stream, which callbacks.more fills.
void chm_stream(struct chm_request *request, unsigned int status);
/// Has callbacks.more asked again for a stream that had nothing.
void chm_wake(struct chm_request *request);

#endif
