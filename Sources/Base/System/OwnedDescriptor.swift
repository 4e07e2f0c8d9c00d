import Glibc

/// A descriptor that is closed on demand, or else with its last reference; used by one thread.
///
/// The end of a pipe has to be closed at a certain time, even while it is referenced. ``OpenFile`` never changes, so that
/// threads may share it.
package final class OwnedDescriptor {
    package private(set) var raw: Int32

    package init(_ raw: Int32) { self.raw = raw }

    deinit { close() }

    package func close() {
        if raw >= 0 { Glibc.close(raw) }
        raw = -1
    }

    package func setNonBlocking() { if raw >= 0 { _ = fcntl(raw, F_SETFL, O_NONBLOCK) } }

    /// Returns the available bytes, at most 64 KiB: empty at end-of-file, nil when none are available now or it is
    /// closed.
    ///
    /// The descriptor must not block: the program itself can take back data that poll(2) has reported. An error counts
    /// as end-of-file.
    package func readAvailable() -> ArraySlice<UInt8>? {
        guard raw >= 0 else { return nil }
        var isNothing = false
        let bytes = Array<UInt8>(unsafeUninitializedCapacity: 64 << 10) { buffer, count in
            let got = Glibc.read(raw, buffer.baseAddress, buffer.count)
            isNothing = got < 0 && (errno == EAGAIN || errno == EINTR)
            count = max(got, 0)
        }
        return isNothing ? nil : bytes[...]
    }
}

extension ContinuousClock.Instant? {
    /// The remaining time in nanoseconds, for `cal_poll`; negative for no limit.
    package var pollLimit: Int64 {
        guard let instant = self else { return -1 }
        let (seconds, attoseconds) = max(instant - .now, .zero).components
        return seconds > 1 << 32 ? -1 : seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
