import FileEvents
package import Globbing
package import System

/// The requirements for a settled file, before an action starts for it.
package struct Readiness: Sendable, Hashable {
    /// The path of a marker file that must exist, relative to the directory of the file.
    package var doneFile: Template? { didSet { markers = doneFile.flatMap(Self.markers) } }
    /// A glob, relative to the root, that matches every possible marker file.
    package private(set) var markers: Glob?
    /// The minimum time since the last change of the content.
    package var minimumAge: Duration?
    package var minimumSize: UInt64?
    /// A program and its arguments, which exits with 0 if the file is ready, and with 75 if it is not ready yet.
    package var command: [Template]?

    package init() {}

    /// Returns the marker file of a path; nil if none is required.
    package func marker(of path: PathBytes) -> PathBytes? {
        doneFile.map { path.parent.appending($0.expanded(with: PlaceholderValues(name: path))).normalized }
    }

    /// Whether the path could be a marker file.
    package func mayBeMarker(_ path: PathBytes) -> Bool { markers?.matches(path.bytes.dropFirst()) ?? false }

    private static func markers(_ doneFile: Template) -> Glob? {
        var pattern: [UInt8] = []
        for part in doneFile.parts {
            switch part {
            case .literal(let bytes): pattern += Glob.escaped(bytes)
            case .placeholder: if pattern.last != UInt8(ascii: "*") { pattern.append(UInt8(ascii: "*")) }
            }
        }
        let path = PathBytes([.slash] + pattern).normalized.bytes
        return try? Glob(Array("**".utf8) + path, options: Glob.Options(matchesHidden: true))
    }

    /// Returns what the file must wait for, without running the command; nil for nothing.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - snapshot: Its current metadata.
    ///   - now: The current time.
    ///   - clock: The local time, for the message.
    ///   - stat: Reads the metadata of another file.
    /// - Returns: The reason to wait, and the time until it ends if that is known.
    package func waiting(
        _ path: PathBytes, _ snapshot: Snapshot, now: Timestamp, _ clock: LocalClock,
        stat: (PathBytes) -> DiskProbe.StatResult
    ) -> (waiting: Waiting, pause: Duration?)? {
        if let minimumSize, snapshot.type == .file, snapshot.size < minimumSize {
            let message = "it has \(snapshot.size) bytes, fewer than the minimum of \(minimumSize)"
            return (Waiting(.size, message), nil)
        }
        if let marker = marker(of: path) {
            switch stat(marker) {
            case .present: break
            case .absent: return (Waiting(.doneFile, "it waits for '\(marker)'"), nil)
            case .unreadable(let errno):
                let message = "its marker '\(marker)' can't be checked: \(SystemError(errno: errno))"
                return (Waiting(.unreadable, message), nil)
            }
        }
        if let minimumAge {
            let modified = snapshot.modified(asOf: now)
            let age = now.since(modified)
            if age < minimumAge {
                let time = modified.advanced(by: minimumAge)
                return (.minimumAge(until: time, clock), minimumAge - age)
            }
        }
        return nil
    }
}

extension PlaceholderValues {
    /// Creates values that depend on the name alone; the root is by default the directory of the file.
    package init(name path: PathBytes, root: PathBytes? = nil, rule: String = "") {
        let event = FileEvent(
            kind: .created, path: path, root: root ?? path.parent, snapshot: .unseen,
            time: Timestamp(seconds: 0, nanoseconds: 0))
        self.init(event: event, rule: rule, job: "", attempt: 0, now: event.time)
    }
}

extension Placeholder {
    /// The placeholders that depend on the last name of a path.
    package static let ofName: Set<Placeholder> = [.name, .stem, .extension]
}
