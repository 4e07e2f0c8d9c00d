import FileEvents
import Glibc
import PluginProtocol
package import Rules
import Settling

/// `copy`: puts a copy of the file somewhere, complete from its first moment.
///
/// The bytes go to a temporary name in the destination's folder, are flushed,
/// and get the final name then, so whoever watches there sees one whole file.
package struct CopyHandler: Handler {
    package init() {}

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "copy"),
        parameters: ParameterSchema(
            type: "object", properties: ["to": Destination.toSchema, "on_conflict": Conflict.schema],
            required: ["to"], additionalProperties: false),
        events: [.created, .modified, .moved, .attributes], types: [.file])

    package func run(_ invocation: Invocation) -> Outcome {
        do throws(FileFault) {
            return try copy(invocation)
        } catch {
            return error.outcome
        }
    }

    private func copy(_ invocation: Invocation) throws(FileFault) -> Outcome {
        let source = invocation.job.event.path
        let destination = try Destination(invocation)
        try destination.makeFolder()
        guard !destination.isSame(as: source) else {
            return Outcome(.failed, "the file would be copied onto itself", code: "same-path")
        }
        if let done = destination.earlierResult(invocation) { return done }
        let copy = FileCopy(
            source: source, destination: destination.path, stop: invocation.stop, deadline: .now + invocation.timeout)
        switch try copy.run() {
        case .notRegular: return Outcome(.failed, "'\(source)' is not a regular file", code: "not-a-file")
        case .gone: return Outcome(.skipped, "it is gone", code: "gone")
        case .interrupted: return .interrupted("stopped while copying")
        case .timedOut: return .timedOut("the time-out ended the copy")
        case .changed: return Outcome(.notReady, "it changed while it was copied", code: "changed")
        case .copied(let temporary, _):
            defer { temporary.withCString { _ = unlink($0) } }
            switch try destination.publish(temporary) {
            case .skipped: return Outcome(.skipped, "'\(destination.path)' exists", code: "exists")
            case .done(let path):
                destination.syncFolder()
                return Outcome(.succeeded, "copied to \(path)", outputs: [path])
            }
        }
    }
}

extension Destination {
    /// The outcome of an attempt that did the work but could not say so, when it can be recognised.
    ///
    /// Otherwise a second attempt would leave a second, numbered copy. Size and
    /// time find it; the content proves it, as long as there is a source to compare with.
    func earlierResult(_ invocation: Invocation) -> Outcome? {
        guard invocation.job.attempt > 1, conflict == .rename else { return nil }
        let event = invocation.job.event
        for number in 0..<Self.mostNumbers {
            let name = numbered(number)
            guard case .present(let there) = DiskProbe.look(at: name) else { return nil }
            guard there.type == .file, there.size == event.snapshot.size, there.modified == event.snapshot.modified,
                FileCopy.hasSameContent(event.path, name)
            else { continue }
            return Outcome(.succeeded, "an earlier attempt left it at \(name)", outputs: [name])
        }
        return nil
    }
}

extension FileCopy {
    /// Whether two files hold the same bytes; true when there is no first one any more.
    fileprivate static func hasSameContent(_ one: PathBytes, _ other: PathBytes) -> Bool {
        let left = one.withCString { open($0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        guard left >= 0 else { return errno == ENOENT }
        defer { close(left) }
        let right = other.withCString { open($0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        guard right >= 0 else { return false }
        defer { close(right) }
        while let here = block(left), let there = block(right) {
            if here != there { return false }
            if here.isEmpty { return true }
        }
        return false
    }

    /// The next bytes, fewer than asked for only at the end; nil when they can't be read.
    private static func block(_ descriptor: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 1 << 18)
        var filled = 0
        while filled < bytes.count {
            let start = filled
            let count = bytes.withUnsafeMutableBytes { buffer in
                read(descriptor, buffer.baseAddress.map { $0 + start }, buffer.count - start)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { break }
            filled += count
        }
        return Array(bytes[..<filled])
    }
}
