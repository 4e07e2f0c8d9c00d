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
}
