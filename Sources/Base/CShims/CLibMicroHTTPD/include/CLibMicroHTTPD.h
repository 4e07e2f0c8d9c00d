// The part of libmicrohttpd that the control API needs, loaded on the first connection.
//
// Linking it, and the TLS libraries it depends on, would slow down every start of the program.
#ifndef CLIB_MICRO_HTTPD_H
#define CLIB_MICRO_HTTPD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// Loads the library. Returns NULL, or the reason for the failure. Callable on any thread, any number of times;
/// required before any other function.
const char *chm_load(void);

struct chm_server;
struct chm_request;

/// The callbacks of a server. Each connection has a thread of its own.
struct chm_callbacks {
    void *context;
    /// Handles a request that has arrived with its body. Returns the status of the response, after chm_answer or
    /// chm_stream; without either, the connection is closed. May block.
    unsigned int (*arrived)(void *context, struct chm_request *request);
    /// Reports that a request is over, successful or not; it must not be used afterwards. `own` is the value of
    /// chm_set_own, or NULL.
    void (*ended)(void *context, void *own, int descriptor);
    /// Reports that a connection is about to be closed.
    void (*closed)(void *context, int descriptor);
    /// Fills in the next bytes of a stream. Returns their count, or 0 at the end. May block.
    ssize_t (*more)(void *context, void *own, char *buffer, size_t size);
};

/// Starts a server without a listening socket. Returns NULL on failure.
///
/// `connections`: the maximum number of connections at a time. `timeout`: the seconds after which an idle connection is
/// closed. `memory`: the bytes for the headers of a request. `body`: the maximum size of its body in bytes.
///
/// The library itself answers requests that it cannot parse, with a fixed HTML page and without the caller's headers,
/// and closes the connection: an invalid request line or header line, a version other than HTTP/1, an invalid
/// Content-Length, invalid chunks, headers that do not fit into the memory. It has no option to change these responses.
struct chm_server *chm_start(
    struct chm_callbacks callbacks, unsigned int connections, unsigned int timeout, size_t memory, size_t body);
/// Adds a connected socket. Takes ownership of it and closes it in any case. Returns 0 or -1.
int chm_add(struct chm_server *server, int descriptor);
/// Closes all connections, and waits for all callbacks.
void chm_stop(struct chm_server *server);

/// Returns the descriptor of the connection.
int chm_connection(struct chm_request *request);
const char *chm_method(struct chm_request *request);
/// Returns the HTTP version, such as "HTTP/1.1".
const char *chm_version(struct chm_request *request);
/// Returns the number of bytes of the request before its body.
size_t chm_header_size(struct chm_request *request);
/// Returns the target as it was sent: path and query, not unescaped.
const char *chm_target(struct chm_request *request);
/// Returns the value of a header, or NULL without one.
const char *chm_header(struct chm_request *request, const char *name);
/// Returns the number of headers with that name.
int chm_header_count(struct chm_request *request, const char *name);
/// Returns the body. If it is too long, its size exceeds the maximum, and the body is incomplete.
const void *chm_body(struct chm_request *request, size_t *size);

/// Creates a response with a copy of the bytes. Returns 0, or -1 if there is no memory.
int chm_answer(struct chm_request *request, const void *body, size_t size);
/// Creates a streaming response, which callbacks.more fills. Returns 0, or -1 if there is no memory.
int chm_stream(struct chm_request *request);
/// Adds a header line to a created response.
void chm_add_header(struct chm_request *request, const char *name, const char *value);
/// Stores a value of the caller in the request, for the callbacks.
void chm_set_own(struct chm_request *request, void *own);

#endif
