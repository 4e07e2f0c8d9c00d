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

/// What a server tells, each connection on a thread of its own.
struct chm_callbacks {
    void *context;
    /// A request has arrived with its body. Returns the status of the answer, after chm_answer or chm_stream; without
    /// one of them the connection is closed. May block.
    unsigned int (*arrived)(void *context, struct chm_request *request);
    /// A request is over, whatever became of it; it must not be used any more. own: what chm_set_own has set, or NULL.
    void (*ended)(void *context, void *own, int descriptor);
    /// A connection is about to be closed.
    void (*closed)(void *context, int descriptor);
    /// The next bytes of a stream: their count, 0 for its end. May block.
    ssize_t (*more)(void *context, void *own, char *buffer, size_t size);
};

/// Starts a server that listens nowhere; NULL when that can't be done.
///
/// connections: most at once; timeout: seconds after which a connection is closed that is neither sent to nor received
/// from; memory: bytes for the header of a request; body: most bytes of its body.
///
/// What the library can't read as a request it answers itself, in HTML that is the same for all, without a header of the
/// caller's, and closes the connection: a request line or a header line that is none, a version that is not HTTP/1, a
/// Content-Length that is no number, chunks that are none, a header that does not fit into the memory. It has no way to be
/// told what to say.
struct chm_server *chm_start(
    struct chm_callbacks callbacks, unsigned int connections, unsigned int timeout, size_t memory, size_t body);
/// Takes a connected socket over, which is closed in any case; 0, or -1.
int chm_add(struct chm_server *server, int descriptor);
/// Closes all connections, and waits for all callbacks.
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

/// Prepares an answer, of which the bytes are copied; 0, or -1 without memory.
int chm_answer(struct chm_request *request, const void *body, size_t size);
/// Prepares a stream as the answer, which callbacks.more fills; 0, or -1 without memory.
int chm_stream(struct chm_request *request);
/// Adds a header line to a prepared answer.
void chm_add_header(struct chm_request *request, const char *name, const char *value);
/// Keeps something with the request, for the callbacks.
void chm_set_own(struct chm_request *request, void *own);

#endif
