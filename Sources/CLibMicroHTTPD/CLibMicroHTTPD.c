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
    X(MHD_get_daemon_info)                                                                                             \
    X(MHD_get_timeout)                                                                                                 \
    X(MHD_lookup_connection_value)                                                                                     \
    X(MHD_queue_response)                                                                                              \
    X(MHD_resume_connection)                                                                                           \
    X(MHD_run)                                                                                                         \
    X(MHD_start_daemon)                                                                                                \
    X(MHD_stop_daemon)                                                                                                 \
    X(MHD_suspend_connection)

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
    size_t most;
};

struct chm_header_line {
    char *name, *value;
    struct chm_header_line *next;
};

struct chm_request {
    struct chm_server *server;
    struct MHD_Connection *connection;
    char *target;
    const char *method, *version;
    char *body;
    size_t size;
    int has_begun, has_arrived, is_suspended;
    struct chm_header_line *headers;
    unsigned int status;
    int has_answer, is_stream;
    char *answer;
    size_t answer_size;
};

static int descriptor_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        calls.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/// Called with the target before it is taken apart; what it returns belongs to the request.
static void *begin(void *context, const char *target, struct MHD_Connection *connection) {
    struct chm_request *request = calloc(1, sizeof *request);
    if (!request) return NULL;
    request->server = context;
    request->connection = connection;
    request->target = strdup(target);
    return request;
}

static ssize_t more(void *context, uint64_t position, char *buffer, size_t size) {
    (void)position;
    struct chm_request *request = context;
    struct chm_server *server = request->server;
    ssize_t count = server->callbacks.more(server->callbacks.context, request, buffer, size);
    if (count < 0) return MHD_CONTENT_READER_END_OF_STREAM;
    if (count == 0) {
        request->is_suspended = 1;
        calls.MHD_suspend_connection(request->connection);
    }
    return count;
}

static enum MHD_Result send_answer(struct chm_request *request) {
    struct MHD_Response *response =
        request->is_stream
            ? calls.MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 8192, more, request, NULL)
            : calls.MHD_create_response_from_buffer(request->answer_size, request->answer, MHD_RESPMEM_MUST_FREE);
    if (!response) return MHD_NO;
    if (!request->is_stream) request->answer = NULL;
    for (struct chm_header_line *line = request->headers; line; line = line->next)
        calls.MHD_add_response_header(response, line->name, line->value);
    enum MHD_Result result = calls.MHD_queue_response(request->connection, request->status, response);
    calls.MHD_destroy_response(response);
    return result;
}

static enum MHD_Result handle(
    void *context, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
    const char *bytes, size_t *size, void **own) {
    (void)url, (void)connection;
    struct chm_server *server = context;
    struct chm_request *request = *own;
    if (!request || !request->target) return MHD_NO;
    if (!request->has_begun) {
        request->has_begun = 1;
        request->method = method;
        request->version = version;
        return MHD_YES;
    }
    if (*size > 0) {
        // What is too long is read on, and dropped: an answer can be given only then.
        if (request->size + *size <= server->most) {
            char *longer = realloc(request->body, request->size + *size);
            if (!longer) return MHD_NO;
            request->body = longer;
            memcpy(longer + request->size, bytes, *size);
        }
        request->size += *size;
        *size = 0;
        return MHD_YES;
    }
    if (request->has_answer) return send_answer(request);
    if (!request->has_arrived) {
        request->has_arrived = 1;
        server->callbacks.arrived(server->callbacks.context, request);
        if (request->has_answer) return send_answer(request);
    }
    request->is_suspended = 1;
    calls.MHD_suspend_connection(request->connection);
    return MHD_YES;
}

static void completed(
    void *context, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode code) {
    (void)code;
    struct chm_server *server = context;
    struct chm_request *request = *own;
    if (!request) return;
    server->callbacks.ended(server->callbacks.context, request, descriptor_of(connection));
    while (request->headers) {
        struct chm_header_line *line = request->headers;
        request->headers = line->next;
        free(line->name);
        free(line->value);
        free(line);
    }
    free(request->answer);
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

/// Nothing is unescaped: who reads the target does that.
static size_t keep(void *context, struct MHD_Connection *connection, char *text) {
    (void)context, (void)connection;
    return strlen(text);
}

static void drop_log(void *context, const char *format, va_list arguments) { (void)context, (void)format, (void)arguments; }

struct chm_server *chm_start(
    struct chm_callbacks callbacks, unsigned int connections, size_t memory, size_t body) {
    struct chm_server *server = calloc(1, sizeof *server);
    if (!server) return NULL;
    server->callbacks = callbacks;
    server->most = body;
    server->daemon = calls.MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, handle,
        server, MHD_OPTION_EXTERNAL_LOGGER, drop_log, NULL, MHD_OPTION_CONNECTION_LIMIT, connections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_URI_LOG_CALLBACK,
        begin, server, MHD_OPTION_UNESCAPE_CALLBACK, keep, NULL, MHD_OPTION_NOTIFY_COMPLETED, completed, server,
        // Not strict: then a request without a host, and a target with blanks, are refused here, and not by it.
        MHD_OPTION_NOTIFY_CONNECTION, connection_changed, server, MHD_OPTION_STRICT_FOR_CLIENT, 0,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (!server->daemon) {
        free(server);
        return NULL;
    }
    return server;
}

int chm_descriptor(struct chm_server *server) {
    const union MHD_DaemonInfo *info = calls.MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info ? info->epoll_fd : -1;
}

int chm_add(struct chm_server *server, int descriptor) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    if (getpeername(descriptor, (struct sockaddr *)&address, &length) != 0) {
        close(descriptor);
        return -1;
    }
    // Of a socket without a name some of the address is not filled in.
    if (length > sizeof address) length = sizeof address;
    enum MHD_Result result =
        calls.MHD_add_connection(server->daemon, descriptor, (struct sockaddr *)&address, length);
    return result == MHD_YES ? 0 : -1;
}

void chm_run(struct chm_server *server) { calls.MHD_run(server->daemon); }

int chm_is_due(struct chm_server *server) {
    MHD_UNSIGNED_LONG_LONG timeout = 0;
    return calls.MHD_get_timeout(server->daemon, &timeout) == MHD_YES && timeout == 0;
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

void chm_add_header(struct chm_request *request, const char *name, const char *value) {
    struct chm_header_line *line = calloc(1, sizeof *line);
    if (!line) return;
    line->name = strdup(name);
    line->value = strdup(value);
    line->next = request->headers;
    if (line->name && line->value) {
        request->headers = line;
    } else {
        free(line->name);
        free(line->value);
        free(line);
    }
}

static void resume(struct chm_request *request) {
    if (!request->is_suspended) return;
    request->is_suspended = 0;
    calls.MHD_resume_connection(request->connection);
}

void chm_answer(struct chm_request *request, unsigned int status, const void *body, size_t size) {
    if (request->has_answer) return;
    // The library wants memory of its own, also for nothing.
    request->answer = malloc(size ? size : 1);
    if (request->answer) memcpy(request->answer, size ? body : "", size ? size : 1);
    request->answer_size = request->answer ? size : 0;
    request->status = request->answer ? status : 503;
    request->has_answer = 1;
    resume(request);
}

void chm_stream(struct chm_request *request, unsigned int status) {
    if (request->has_answer) return;
    request->status = status;
    request->is_stream = 1;
    request->has_answer = 1;
    resume(request);
}

void chm_wake(struct chm_request *request) { resume(request); }
