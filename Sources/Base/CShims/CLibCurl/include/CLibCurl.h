// The part of libcurl that requests need, loaded on the first request.
//
// Linking it, and the thirty libraries it depends on, would slow down every start of the program.
#ifndef CLIB_CURL_H
#define CLIB_CURL_H

#include <stddef.h>
#include <stdint.h>

/// Loads the library. Returns NULL, or the reason for the failure. Callable on any thread, any number of times;
/// required before any other function.
const char *clc_load(void);

/// Receives the next bytes of the response. Returning 0 ends the transfer.
typedef int (*clc_receive)(void *context, const char *bytes, size_t count);

struct clc_transfer;

/// Creates a request. Returns NULL if there is no memory. Strings and bytes are copied, here and below.
struct clc_transfer *clc_open(const char *url, const char *method, const void *body, size_t size);
/// Adds a header line, `Name: value`, or `Name;` for an empty value. This function and the next ones return 0 or -1.
int clc_add_header(struct clc_transfer *transfer, const char *line);
/// Trusts the certificate authorities in a file instead of the system's.
int clc_set_ca_file(struct clc_transfer *transfer, const char *path);
/// Uses a proxy.
int clc_set_proxy(struct clc_transfer *transfer, const char *url);
/// Limits the time for establishing a connection.
int clc_set_connect_time(struct clc_transfer *transfer, int64_t milliseconds);
/// Sets the receiver of the response, and starts the transfer.
int clc_start(struct clc_transfer *transfer, clc_receive receive, void *context);

/// Continues the transfer until there is activity, the descriptor (or -1) is readable, or the time is over.
///
/// Returns 1 while the transfer continues, 0 when it is finished.
int clc_perform(struct clc_transfer *transfer, int descriptor, int milliseconds);

/// Returns 0, or libcurl's error number. This function and the next ones are valid once the transfer is finished.
int clc_result(struct clc_transfer *transfer);
/// Returns the error message.
const char *clc_error(struct clc_transfer *transfer);
/// Returns the status of the response, or 0 without one.
long clc_status(struct clc_transfer *transfer);
/// Returns the delay in seconds that the response requests with Retry-After, or 0 without one.
int64_t clc_retry_after(struct clc_transfer *transfer);
/// Returns the absolute target of a redirect, or NULL without one.
const char *clc_redirect(struct clc_transfer *transfer);
/// Closes the transfer at any time, without waiting for operations in progress such as a name lookup.
void clc_close(struct clc_transfer *transfer);

/// The errors that are distinguished.
enum clc_error_number {
    CLC_UNSUPPORTED_PROTOCOL,
    CLC_BAD_URL,
    CLC_BAD_CA_FILE,
    CLC_NOT_VERIFIED,
    CLC_NOT_TAKEN,
    CLC_OTHER,
};
enum clc_error_number clc_kind(int result);

/// The parts of a URL, not unescaped. Parsing returns 0, or -1 for an invalid URL.
///
/// Parts that do not fit are cut. The port is set even if it is the default of the scheme.
struct clc_url {
    char scheme[16];
    char host[256];
    char port[8];
    int has_user;
};
int clc_parse(const char *url, struct clc_url *out);

#endif
