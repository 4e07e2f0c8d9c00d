// The part of libcurl that a request needs, loaded when one is first made.
//
// Linked, it and the thirty libraries that it brings along would make every start of the program slower.
#ifndef CLIB_CURL_H
#define CLIB_CURL_H

#include <stddef.h>
#include <stdint.h>

/// Loads the library: NULL, or why that can't be done. Any thread, any number of times; the others need it first.
const char *clc_load(void);

/// Takes the next bytes of the answer; 0 ends the transfer.
typedef int (*clc_take)(void *context, const char *bytes, size_t count);

struct clc_transfer;

/// Prepares a request; NULL when there is no memory. Texts and bytes are copied, here and below.
struct clc_transfer *clc_open(const char *url, const char *method, const void *body, size_t size);
/// Adds a header line, `Name: value`, or `Name;` for an empty one; each of these: 0, or -1.
int clc_add_header(struct clc_transfer *transfer, const char *line);
/// Trusts the authorities in a file instead of the system's.
int clc_set_ca_file(struct clc_transfer *transfer, const char *path);
/// Goes through a proxy.
int clc_set_proxy(struct clc_transfer *transfer, const char *url);
/// Bounds the time that a connection may take.
int clc_set_connect_time(struct clc_transfer *transfer, int64_t milliseconds);
/// Says who takes the answer, and begins.
int clc_start(struct clc_transfer *transfer, clc_take take, void *context);

/// Goes on with it until something happens, the descriptor (or -1) is readable, or the time is over.
///
/// 1 while it goes on, 0 when it has ended.
int clc_perform(struct clc_transfer *transfer, int descriptor, int milliseconds);

/// How it ended: 0, or libcurl's number of the error. Each is valid when the transfer has ended.
int clc_result(struct clc_transfer *transfer);
/// What went wrong, in words.
const char *clc_error(struct clc_transfer *transfer);
/// The status of the answer; 0 without one.
long clc_status(struct clc_transfer *transfer);
/// The pause that the answer asks for by Retry-After; 0 without one.
int64_t clc_retry_after(struct clc_transfer *transfer);
/// Where the answer redirects to, absolute; NULL when it doesn't.
const char *clc_redirect(struct clc_transfer *transfer);
/// May be called at any time: what still goes on, as a look-up of a name, is not waited for.
void clc_close(struct clc_transfer *transfer);

/// Numbers of errors that are told apart.
enum clc_error_number {
    CLC_UNSUPPORTED_PROTOCOL,
    CLC_BAD_URL,
    CLC_BAD_CA_FILE,
    CLC_NOT_VERIFIED,
    CLC_NOT_TAKEN,
    CLC_OTHER,
};
enum clc_error_number clc_kind(int result);

/// The parts of a URL, each without its escapes of what is not text; 0, or -1 when it is none.
///
/// Parts that don't fit are cut; the port is told also when it is the scheme's own.
struct clc_url {
    char scheme[16];
    char host[256];
    char port[8];
    int has_user;
};
int clc_parse(const char *url, struct clc_url *out);

#endif
