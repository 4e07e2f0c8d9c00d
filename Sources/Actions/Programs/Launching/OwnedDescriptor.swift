import Glibc

/// A descriptor that is closed on demand, and at the latest when nobody refers to it any more.
final class OwnedDescriptor {
    private(set) var raw: Int32

    init(_ raw: Int32) { self.raw = raw }

    deinit { close() }

    func close() {
        if raw >= 0 { Glibc.close(raw) }
        raw = -1
    }

    /// The descriptor, which is the caller's to close from now on.
    func taken() -> Int32 {
        defer { raw = -1 }
        return raw
    }

    func setNonBlocking() { _ = fcntl(raw, F_SETFL, O_NONBLOCK) }

    /// What is there to read, at most 64 KiB, empty at the end; nil when nothing is there now, or when it is closed.
    ///
    /// It must be set not to block: what poll(2) has seen, the program itself can take back. An error is the end.
    func readAvailable() -> ArraySlice<UInt8>? {
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
    /// The time that is left until then, in nanoseconds for `cal_poll`; negative for ever.
    var pollLimit: Int64 {
        guard let moment = self else { return -1 }
        let (seconds, attoseconds) = max(moment - .now, .zero).components
        return seconds > 1 << 32 ? -1 : seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
