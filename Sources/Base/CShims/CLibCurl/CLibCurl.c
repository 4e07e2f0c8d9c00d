#include "CLibCurl.h"
#include "CSharedLibrary.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// These are also macros that check the types of arguments and cannot be taken as pointers.
#undef curl_easy_getinfo
#undef curl_easy_setopt

#define CALLS(X)                                                                                                       \
    X(curl_easy_cleanup)                                                                                               \
    X(curl_easy_getinfo)                                                                                               \
    X(curl_easy_init)                                                                                                  \
    X(curl_easy_setopt)                                                                                                \
    X(curl_easy_strerror)                                                                                              \
    X(curl_free)                                                                                                       \
    X(curl_global_init)                                                                                                \
    X(curl_multi_add_handle)                                                                                           \
    X(curl_multi_cleanup)                                                                                              \
    X(curl_multi_info_read)                                                                                            \
    X(curl_multi_init)                                                                                                 \
    X(curl_multi_perform)                                                                                              \
    X(curl_multi_poll)                                                                                                 \
    X(curl_multi_remove_handle)                                                                                        \
    X(curl_slist_append)                                                                                               \
    X(curl_slist_free_all)                                                                                             \
    X(curl_url)                                                                                                        \
    X(curl_url_cleanup)                                                                                                \
    X(curl_url_get)                                                                                                    \
    X(curl_url_set)

static struct { CALLS(CSL_POINTER) } calls;
static const struct csl_function functions[] = {CALLS(CSL_FUNCTION)};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char problem[256];

static void load(void) {
    csl_load("libcurl.so.4", functions, sizeof functions / sizeof *functions, problem, sizeof problem);
    if (problem[0]) return;
    CURLcode result = calls.curl_global_init(CURL_GLOBAL_DEFAULT);
    if (result != CURLE_OK) strncpy(problem, calls.curl_easy_strerror(result), sizeof problem - 1);
}

const char *clc_load(void) {
    pthread_once(&once, load);
    return problem[0] ? problem : NULL;
}

struct clc_transfer {
    CURL *easy;
    CURLM *multi;
    struct curl_slist *headers;
    clc_receive receive;
    void *context;
    int has_ended;
    size_t header_bytes;
    CURLcode result;
    char error[CURL_ERROR_SIZE];
};

static size_t write_callback(char *bytes, size_t size, size_t count, void *data) {
    struct clc_transfer *transfer = data;
    return transfer->receive(transfer->context, bytes, size * count) ? size * count : CURL_WRITEFUNC_ERROR;
}

// The limit for all headers of a response, including interim responses.
enum { MOST_HEADER_BYTES = 1 << 16 };

static size_t header_callback(char *bytes, size_t size, size_t count, void *data) {
    (void)bytes;
    struct clc_transfer *transfer = data;
    transfer->header_bytes += size * count;
    return transfer->header_bytes <= MOST_HEADER_BYTES ? size * count : CURL_WRITEFUNC_ERROR;
}

struct clc_transfer *clc_open(const char *url, const char *method, const void *body, size_t size) {
    struct clc_transfer *transfer = calloc(1, sizeof *transfer);
    if (!transfer) return NULL;
    CURL *easy = transfer->easy = calls.curl_easy_init();
    transfer->multi = calls.curl_multi_init();
    if (!easy || !transfer->multi) {
        clc_close(transfer);
        return NULL;
    }
    int isRefused = 0;
#define SET(option, value) isRefused |= calls.curl_easy_setopt(easy, option, value) != CURLE_OK
    // Signals belong to the program. Names are resolved on a thread.
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_ERRORBUFFER, transfer->error);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    // An empty value makes libcurl ignore the environment variables.
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_USERAGENT, "Alight");
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    SET(CURLOPT_COPYPOSTFIELDS, size > 0 ? body : "");
    SET(CURLOPT_CUSTOMREQUEST, method);
    if (isRefused) {
        clc_close(transfer);
        return NULL;
    }
    // The transfer reports errors of the URL itself.
    calls.curl_easy_setopt(easy, CURLOPT_URL, url);
    return transfer;
}

int clc_add_header(struct clc_transfer *transfer, const char *line) {
    struct curl_slist *longer = calls.curl_slist_append(transfer->headers, line);
    if (longer) transfer->headers = longer;
    return longer ? 0 : -1;
}

int clc_set_ca_file(struct clc_transfer *transfer, const char *path) {
    return calls.curl_easy_setopt(transfer->easy, CURLOPT_CAINFO, path) == CURLE_OK ? 0 : -1;
}

int clc_set_proxy(struct clc_transfer *transfer, const char *url) {
    return calls.curl_easy_setopt(transfer->easy, CURLOPT_PROXY, url) == CURLE_OK ? 0 : -1;
}

int clc_set_connect_time(struct clc_transfer *transfer, int64_t milliseconds) {
    long limit = (long)milliseconds;
    return calls.curl_easy_setopt(transfer->easy, CURLOPT_CONNECTTIMEOUT_MS, limit) == CURLE_OK ? 0 : -1;
}

int clc_start(struct clc_transfer *transfer, clc_receive receive, void *context) {
    CURL *easy = transfer->easy;
    transfer->receive = receive;
    transfer->context = context;
    int isRefused = 0;
    SET(CURLOPT_HTTPHEADER, transfer->headers);
    SET(CURLOPT_WRITEFUNCTION, write_callback);
    SET(CURLOPT_WRITEDATA, transfer);
    SET(CURLOPT_HEADERFUNCTION, header_callback);
    SET(CURLOPT_HEADERDATA, transfer);
    return isRefused || calls.curl_multi_add_handle(transfer->multi, easy) != CURLM_OK ? -1 : 0;
}

int clc_perform(struct clc_transfer *transfer, int descriptor, int milliseconds) {
    int running = 0;
    if (transfer->has_ended) return 0;
    if (calls.curl_multi_perform(transfer->multi, &running) != CURLM_OK) {
        transfer->result = CURLE_FAILED_INIT;
        transfer->has_ended = 1;
        return 0;
    }
    int left = 0;
    CURLMsg *message;
    while ((message = calls.curl_multi_info_read(transfer->multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        transfer->result = message->data.result;
        transfer->has_ended = 1;
        if (transfer->header_bytes > MOST_HEADER_BYTES) {
            transfer->result = CURLE_RECV_ERROR;
            snprintf(transfer->error, sizeof transfer->error, "the headers of the answer have more than 64 KiB");
        }
    }
    if (transfer->has_ended || !running) {
        transfer->has_ended = 1;
        return 0;
    }
    struct curl_waitfd waiter = {.fd = descriptor, .events = CURL_WAIT_POLLIN, .revents = 0};
    calls.curl_multi_poll(transfer->multi, &waiter, descriptor >= 0 ? 1 : 0, milliseconds, NULL);
    return 1;
}

int clc_result(struct clc_transfer *transfer) { return (int)transfer->result; }

const char *clc_error(struct clc_transfer *transfer) {
    return transfer->error[0] ? transfer->error : calls.curl_easy_strerror(transfer->result);
}

long clc_status(struct clc_transfer *transfer) {
    long status = 0;
    calls.curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

int64_t clc_retry_after(struct clc_transfer *transfer) {
    curl_off_t seconds = 0;
    calls.curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &seconds);
    return seconds;
}

const char *clc_redirect(struct clc_transfer *transfer) {
    char *url = NULL;
    calls.curl_easy_getinfo(transfer->easy, CURLINFO_REDIRECT_URL, &url);
    return url;
}

void clc_close(struct clc_transfer *transfer) {
    if (transfer->easy) {
        calls.curl_easy_setopt(transfer->easy, CURLOPT_QUICK_EXIT, 1L);
        if (transfer->multi) calls.curl_multi_remove_handle(transfer->multi, transfer->easy);
        calls.curl_easy_cleanup(transfer->easy);
    }
    if (transfer->multi) calls.curl_multi_cleanup(transfer->multi);
    if (transfer->headers) calls.curl_slist_free_all(transfer->headers);
    free(transfer);
}

enum clc_error_number clc_kind(int result) {
    switch (result) {
    case CURLE_UNSUPPORTED_PROTOCOL: return CLC_UNSUPPORTED_PROTOCOL;
    case CURLE_URL_MALFORMAT: return CLC_BAD_URL;
    case CURLE_SSL_CACERT_BADFILE: return CLC_BAD_CA_FILE;
    case CURLE_PEER_FAILED_VERIFICATION: return CLC_NOT_VERIFIED;
    case CURLE_WRITE_ERROR: return CLC_NOT_TAKEN;
    default: return CLC_OTHER;
    }
}

static void copy_part(CURLU *url, CURLUPart part, unsigned int flags, char *out, size_t size) {
    char *text = NULL;
    out[0] = 0;
    if (calls.curl_url_get(url, part, &text, flags) == CURLUE_OK && text) {
        snprintf(out, size, "%s", text);
        calls.curl_free(text);
    }
}

int clc_parse(const char *text, struct clc_url *out) {
    CURLU *url = calls.curl_url();
    if (!url) return -1;
    int result = -1;
    if (calls.curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK) {
        char user[8];
        copy_part(url, CURLUPART_SCHEME, 0, out->scheme, sizeof out->scheme);
        copy_part(url, CURLUPART_HOST, 0, out->host, sizeof out->host);
        copy_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, out->port, sizeof out->port);
        copy_part(url, CURLUPART_USER, 0, user, sizeof user);
        out->has_user = user[0] != 0;
        result = 0;
    }
    calls.curl_url_cleanup(url);
    return result;
}
