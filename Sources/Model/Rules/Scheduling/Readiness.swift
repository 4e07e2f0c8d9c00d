import FileEvents
package import System

/// The requirements for a settled file, before an action starts for it.
package struct Readiness: Sendable, Hashable {
    /// The path of a marker file that must exist, relative to the directory of the file.
    package var doneFile: Template?
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

    /// Whether the path could be a marker file, by its last name alone.
    package func mayBeMarker(_ path: PathBytes) -> Bool {
        guard let doneFile else { return false }
        let (prefix, suffix, isLiteral) = Self.ends(of: doneFile)
        let name = path.lastComponent
        if isLiteral { return name.elementsEqual(prefix) }
        return name.count >= prefix.count + suffix.count && name.starts(with: prefix)
            && name.suffix(suffix.count).elementsEqual(suffix)
    }

    /// Returns the prefix and the suffix of the path's last name, and whether the prefix is the whole name.
    private static func ends(of template: Template) -> (prefix: [UInt8], suffix: [UInt8], isLiteral: Bool) {
        var prefix: [UInt8] = []
        var suffix: [UInt8] = []
        var isLiteral = true
        for part in template.parts {
            switch part {
            case .placeholder:
                isLiteral = false
                suffix = []
            case .literal(let bytes):
                let last = bytes.lastIndex(of: .slash)
                if last != nil {
                    isLiteral = true
                    prefix = []
                }
                let rest = bytes[(last.map { $0 + 1 } ?? 0)...]
                if isLiteral { prefix += rest } else { suffix += rest }
            }
        }
        return (prefix, suffix, isLiteral)
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
