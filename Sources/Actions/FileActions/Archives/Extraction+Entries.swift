import CLibArchive
import Glibc
import System

// Extraction of single entries.
extension Extraction {
    /// Removes an earlier entry with the same name; the later entry counts.
    func clear(
        _ path: PathBytes, _ name: PathBytes, _ parent: Int32, _ refuse: (String) -> Refusal
    ) throws(Refusal) {
        links[path] = nil
        if name.withCString({ unlinkat(parent, $0, 0) }) == 0 || errno == ENOENT { return }
        if errno == EISDIR || errno == EPERM { throw refuse("is a directory and something else") }
        throw Self.fault("cannot remove '\(path)'")
    }

    func link(
        _ path: PathBytes, _ name: PathBytes, _ parent: Int32, to target: PathBytes, _ refuse: (String) -> Refusal
    ) throws(Refusal) {
        let parts = try Self.parts(of: target, refuse)
        let source = PathBytes(parts.joined(separator: [.slash]))
        if source == path { return }
        if let further = links[source], parts.count == path.bytes.split(separator: .slash).count,
            source.parent == path.parent
        {
            // A second name of a link, in the same directory, has the same target.
            try clear(path, name, parent, refuse)
            links[path] = further
            return
        }
        func isMissing() -> Refusal {
            refuse("is a link to '\(String(cleaning: target.bytes))', which is not a file before it")
        }
        guard let last = parts.last, links[source] == nil else { throw isMissing() }
        var current = dup(folder)
        defer { close(current) }
        for part in parts.dropLast() {
            let next = PathBytes(part).withCString {
                openat(current, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            }
            guard next >= 0 else { throw isMissing() }
            close(current)
            current = next
        }
        let from = PathBytes(last)
        guard Self.type(of: from, in: current) == UInt32(S_IFREG) else { throw isMissing() }
        try clear(path, name, parent, refuse)
        guard from.withCString({ from in name.withCString { linkat(current, from, parent, $0, 0) } }) == 0 else {
            throw Self.fault("cannot link '\(path)'")
        }
    }

    func write(
        _ name: PathBytes, in parent: Int32, _ entry: cla_entry, _ reader: OpaquePointer, _ time: timespec?,
        _ refuse: (String) -> Refusal
    ) throws(Refusal) {
        // No set-user-id or similar bits, and the owner can always read and write the file.
        let mode = entry.mode & 0o777 | 0o600
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = name.withCString { openat(parent, $0, flags, mode_t(mode)) }
        guard descriptor >= 0 else { throw Self.fault("cannot create '\(name)'") }
        defer { close(descriptor) }
        let start = bytes
        func reach(_ size: UInt64) throws(Refusal) {
            let (sum, isOver) = start.addingReportingOverflow(size)
            bytes = max(bytes, isOver ? .max : sum)
            try checkBounds()
        }
        // A file whose announced size exceeds the limit is refused before it is written.
        if entry.size > 0 { try reach(UInt64(entry.size)) }
        var end: UInt64 = 0
        while true {
            var block: UnsafeRawPointer?
            var size = 0
            var offset: Int64 = 0
            let result = cla_reader_data(reader, &block, &size, &offset)
            if result == 0 { break }
            guard result > 0, offset >= 0 else { throw problem(of: reader) }
            if isOver() {
                wasStopped = true
                throw Refusal(message: "stopped", code: "stopped")
            }
            let (reached, isBeyond) = UInt64(offset).addingReportingOverflow(UInt64(size))
            try reach(isBeyond ? .max : reached)
            try put(UnsafeRawBufferPointer(start: block, count: size), descriptor, at: offset, name)
            end = max(end, reached)
        }
        // A file may end in a hole.
        if entry.size > Int64(clamping: end), ftruncate(descriptor, off_t(entry.size)) != 0 {
            throw Self.fault("cannot write '\(name)'")
        }
        if let time { Self.setTime(time, of: descriptor) }
    }

    private func put(
        _ bytes: UnsafeRawBufferPointer, _ descriptor: Int32, at offset: Int64, _ name: PathBytes
    ) throws(Refusal) {
        var written = 0
        while written < bytes.count {
            let step = pwrite(
                descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written, off_t(offset) + written)
            if step < 0, errno == EINTR { continue }
            guard step > 0 else { throw Self.fault("cannot write '\(name)'") }
            written += step
        }
    }
}
