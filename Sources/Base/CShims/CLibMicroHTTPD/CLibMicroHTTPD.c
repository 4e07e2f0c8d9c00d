#include "CLibMicroHTTPD.h"
#include "CSharedLibrary.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLS(X)                                                                                                       \
    X(MHD_add_connection)                                                                                              \
    X(MHD_add_response_header)                                                                                         \
    X(MHD_create_response_from_buffer)                                                                                 \
    X(MHD_create_response_from_callback)                                                                               \
    X(MHD_destroy_response)                                                                                            \
    X(MHD_get_connection_info)                                                                                         \
    X(MHD_get_connection_values)                                                                                       \
    X(MHD_lookup_connection_value)                                                                                     \
    X(MHD_queue_response)                                                                                              \
    X(MHD_start_daemon)                                                                                                \
    X(MHD_stop_daemon)

static struct { CALLS(CSL_POINTER) } calls;
static const struct csl_function functions[] = {CALLS(CSL_FUNCTION)};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char problem[256];

static void load(void) {
    csl_load("libmicrohttpd.so.12", functions, sizeof functions / sizeof *functions, problem, sizeof problem);
}

const char *chm_load(void) {
    pthread_once(&once, load);
    return problem[0] ? problem : NULL;
}

struct chm_server {
    struct MHD_Daemon *daemon;
    struct chm_callbacks callbacks;
    size_t body_limit;
};

struct chm_request {
    struct chm_server *server;
    struct MHD_Connection *connection;
    char *target;
    const char *method, *version;
    char *body;
    size_t size;
    int has_started;
    struct MHD_Response *response;
    void *own;
};

static int descriptor_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        calls.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/// Receives the target before it is parsed. The returned value belongs to the request.
static void *start_request(void *context, const char *target, struct MHD_Connection *connection) {
    struct chm_request *request = calloc(1, sizeof *request);
    if (!request) return NULL;
    request->server = context;
    request->connection = connection;
    request->target = strdup(target);
    return request;
}

static ssize_t fill_stream(void *context, uint64_t position, char *buffer, size_t size) {
    (void)position;
    struct chm_request *request = context;
    ssize_t count = request->server->callbacks.more(request->server->callbacks.context, request->own, buffer, size);
    return count > 0 ? count : MHD_CONTENT_READER_END_OF_STREAM;
}

static enum MHD_Result handle(
    void *context, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
    const char *bytes, size_t *size, void **own) {
    (void)url;
    struct chm_server *server = context;
    struct chm_request *request = *own;
    if (!request || !request->target) return MHD_NO;
    if (!request->has_started) {
        request->has_started = 1;
        request->method = method;
        request->version = version;
        return MHD_YES;
    }
    if (*size > 0) {
        // A body that is too long is read to its end and dropped, because a response can be sent only then.
        if (request->size + *size <= server->body_limit) {
            char *longer = realloc(request->body, request->size + *size);
            if (!longer) return MHD_NO;
            request->body = longer;
            memcpy(longer + request->size, bytes, *size);
        }
        request->size += *size;
        *size = 0;
        return MHD_YES;
    }
    unsigned int status = server->callbacks.arrived(server->callbacks.context, request);
    if (!request->response) return MHD_NO;
    enum MHD_Result result = calls.MHD_queue_response(connection, status, request->response);
    calls.MHD_destroy_response(request->response);
    return result;
}

static void completed(
    void *context, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode code) {
    (void)code;
    struct chm_server *server = context;
    struct chm_request *request = *own;
    if (!request) return;
    server->callbacks.ended(server->callbacks.context, request->own, descriptor_of(connection));
    free(request->body);
    free(request->target);
    free(request);
    *own = NULL;
}

static void connection_changed(
    void *context, struct MHD_Connection *connection, void **own, enum MHD_ConnectionNotificationCode code) {
    (void)own;
    struct chm_server *server = context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED)
        server->callbacks.closed(server->callbacks.context, descriptor_of(connection));
}

/// Does not change the target: its reader unescapes it.
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text) {
    (void)context, (void)connection;
    return strlen(text);
}

static void drop_log(void *context, const char *format, va_list arguments) {
    (void)context, (void)format, (void)arguments;
}

struct chm_server *chm_start(
    struct chm_callbacks callbacks, unsigned int connections, unsigned int timeout, size_t memory, size_t body) {
    struct chm_server *server = calloc(1, sizeof *server);
    if (!server) return NULL;
    server->callbacks = callbacks;
    server->body_limit = body;
    server->daemon = calls.MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_NO_LISTEN_SOCKET |
            MHD_USE_ITC | MHD_USE_ERROR_LOG,
        0, NULL, NULL, handle, server, MHD_OPTION_EXTERNAL_LOGGER, drop_log, NULL,
        MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory,
        MHD_OPTION_CONNECTION_TIMEOUT, timeout, MHD_OPTION_URI_LOG_CALLBACK, start_request, server,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED, completed, server,
        // Not strict: requests without a host, and targets with spaces, are refused by the caller instead of the
        // library.
        MHD_OPTION_NOTIFY_CONNECTION, connection_changed, server, MHD_OPTION_STRICT_FOR_CLIENT, 0,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (!server->daemon) {
        free(server);
        return NULL;
    }
    return server;
}

int chm_add(struct chm_server *server, int descriptor) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    if (getpeername(descriptor, (struct sockaddr *)&address, &length) != 0) {
        close(descriptor);
        return -1;
    }
    // The address of an unnamed socket is filled in only partly.
    if (length > sizeof address) length = sizeof address;
    enum MHD_Result result =
        calls.MHD_add_connection(server->daemon, descriptor, (struct sockaddr *)&address, length);
    return result == MHD_YES ? 0 : -1;
}

void chm_stop(struct chm_server *server) {
    calls.MHD_stop_daemon(server->daemon);
    free(server);
}

int chm_connection(struct chm_request *request) { return descriptor_of(request->connection); }

const char *chm_method(struct chm_request *request) { return request->method; }

const char *chm_version(struct chm_request *request) { return request->version; }

size_t chm_header_size(struct chm_request *request) {
    const union MHD_ConnectionInfo *info =
        calls.MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}

const char *chm_target(struct chm_request *request) { return request->target; }

const char *chm_header(struct chm_request *request, const char *name) {
    return calls.MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

struct counting {
    const char *name;
    int count;
};

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
    (void)kind, (void)value;
    struct counting *counting = context;
    if (name && strcasecmp(name, counting->name) == 0) counting->count += 1;
    return MHD_YES;
}

int chm_header_count(struct chm_request *request, const char *name) {
    struct counting counting = {.name = name, .count = 0};
    calls.MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_header, &counting);
    return counting.count;
}

const void *chm_body(struct chm_request *request, size_t *size) {
    *size = request->size;
    return request->body;
}

int chm_answer(struct chm_request *request, const void *body, size_t size) {
    // The library requires a non-null address even for an empty body.
    request->response =
        calls.MHD_create_response_from_buffer(size, (void *)(size ? body : ""), MHD_RESPMEM_MUST_COPY);
    return request->response ? 0 : -1;
}

int chm_stream(struct chm_request *request) {
    request->response = calls.MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 8192, fill_stream, request, NULL);
    return request->response ? 0 : -1;
}

void chm_add_header(struct chm_request *request, const char *name, const char *value) {
    calls.MHD_add_response_header(request->response, name, value);
}

void chm_set_own(struct chm_request *request, void *own) { request->own = own; }
