import CRawInotify
import FileEvents

#if canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The descriptor of an instance, and a second one that wakes whoever waits for it.
///
/// Both are closed when nobody uses them any more, so no call can meet a number
/// that has become another file's.
final class InotifyQueue: Sendable {
    let descriptor: Int32
    /// Becomes readable when the instance is closed, and stays so.
    let closing: Int32

    /// As much as the kernel hands out at once.
    ///
    /// A record has at most 16 bytes and a name of 256.
    private static let bufferSize = 32 * 1024

    init() throws(InotifyError) {
        let closing = cri_eventfd()
        guard closing >= 0 else { throw .noDescriptor(errno: -closing) }
        let descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        if descriptor < 0 {
            let error = errno
            close(closing)
            // The same errno means that the process has too many descriptors, or the user too many instances.
            let spare = cri_eventfd()
            guard error == EMFILE, spare >= 0 else { throw .noDescriptor(errno: error) }
            close(spare)
            throw .instanceLimit(.instances)
        }
        self.descriptor = descriptor
        self.closing = closing
    }

    deinit {
        close(descriptor)
        close(closing)
    }

    /// Ends all waiting, now and later.
    func endWaiting() { Self.ring(closing) }

    static func ring(_ bell: Int32) {
        var one: UInt64 = 1
        _ = write(bell, &one, 8)
    }

    /// Takes what one read(2) gives; nothing when the queue is empty.
    func take() throws(InotifyError) -> [InotifyEvent] {
        let result = withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 8) { buffer in
            while true {
                let count = read(descriptor, buffer.baseAddress, buffer.count)
                if count >= 0 { return Result<[InotifyEvent], InotifyError>.success(Self.events(buffer, count)) }
                switch errno {
                case EINTR: continue
                case EAGAIN: return .success([])
                default: return .failure(.unreadable(errno: errno))
                }
            }
        }
        return try result.get()
    }

    private static func events(_ buffer: UnsafeMutableRawBufferPointer, _ count: Int) -> [InotifyEvent] {
        var events: [InotifyEvent] = []
        let header = MemoryLayout<inotify_event>.size
        var offset = 0
        while offset + header <= count {
            let record = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
            let start = offset + header
            offset = start + Int(record.len)
            precondition(offset <= count, "inotify returns whole records")
            // Names are padded with NULs.
            let name = buffer[start..<offset].prefix { $0 != 0 }
            events.append(
                InotifyEvent(
                    watch: InotifyWatch(rawValue: record.wd), mask: InotifyMask(rawValue: record.mask),
                    cookie: record.cookie, name: PathBytes(name)))
        }
        return events
    }

    /// Blocks until there is something to take, the instance is closed, or the time is over, nil for never.
    func wait(until deadline: ContinuousClock.Instant?) {
        var milliseconds: Int32 = -1
        if let deadline {
            let (seconds, attoseconds) = ContinuousClock.now.duration(to: deadline).components
            // Rounded up, or the last of it would be spent in a loop.
            let rest = min(seconds, 1_000_000) * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
            milliseconds = Int32(max(0, rest))
        }
        var waited = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: closing, events: Int16(POLLIN), revents: 0),
        ]
        _ = poll(&waited, 2, milliseconds)
    }
}
