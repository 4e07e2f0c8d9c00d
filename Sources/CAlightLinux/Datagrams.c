#define _GNU_SOURCE
#include "include/CAlightLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int cal_datagram_socket(void) {
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return descriptor >= 0 ? descriptor : -errno;
}

// The length of the address, 0 when the path is too long; a leading '@' is the NUL of an abstract address.
static socklen_t address_of(const char *path, struct sockaddr_un *address) {
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof address->sun_path) return 0;
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, length);
    if (path[0] == '@') {
        address->sun_path[0] = 0;
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    }
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
}

static int send_message(int descriptor, struct msghdr *message, int flags) {
    ssize_t sent;
    do sent = sendmsg(descriptor, message, flags | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0 ? 0 : errno;
}

int cal_send_datagram(int descriptor, const char *path, const void *bytes, size_t length, int waits) {
    struct sockaddr_un address;
    socklen_t size = address_of(path, &address);
    if (size == 0) return ENAMETOOLONG;
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = length};
    struct msghdr message = {.msg_name = &address, .msg_namelen = size, .msg_iov = &part, .msg_iovlen = 1};
    return send_message(descriptor, &message, waits ? 0 : MSG_DONTWAIT);
}

int cal_send_sealed(int descriptor, const char *path, const void *bytes, size_t length) {
    struct sockaddr_un address;
    socklen_t size = address_of(path, &address);
    if (size == 0) return ENAMETOOLONG;
    int file = memfd_create("alight-message", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) return errno;
    int error = 0;
    for (size_t done = 0; done < length && error == 0;) {
        ssize_t written = write(file, (const char *)bytes + done, length - done);
        if (written > 0) done += (size_t)written;
        else if (written == 0 || errno != EINTR) error = written == 0 ? EIO : errno;
    }
    // The reader maps it, and trusts only what can't be changed any more.
    if (error == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
        error = errno;
    if (error == 0) {
        union {
            struct cmsghdr header;
            char room[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct msghdr message = {.msg_name = &address, .msg_namelen = size, .msg_control = &control,
                                 .msg_controllen = sizeof control.room};
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &file, sizeof(int));
        error = send_message(descriptor, &message, 0);
    }
    close(file);
    return error;
}
