import ActionAPI
import FileEvents
import Glibc
import Globbing
import Rules
import System
import Testing
import TestKit

/// Runs one built-in handler for one file, as the engine does.
struct BuiltInRun {
    var handler: any Handler
    var attempt = 1
    var stop = StopSignal()
    /// The snapshot of the file in the event, or nil to stat the file.
    var snapshot: Snapshot?
    var directory: PathBytes = "/nowhere"
    var roots: [PathBytes] = []
    var log = LogLines()
    var isInterrupted = false
    var timeout = Duration.seconds(60)
    /// The root that the rule watches, or nil for the directory of the file.
    var root: PathBytes?
    /// Whether the file must match `snapshot`.
    var expectsSettled = false
    /// Parameters that are not strings.
    var further: [String: Parameter] = [:]

    init(_ handler: any Handler) { self.handler = handler }

    func callAsFunction(_ path: PathBytes, _ parameters: [String: PathBytes]) -> Outcome {
        self(path, templates: parameters.mapValues { Template(parts: [.literal($0.bytes)]) })
    }

    func callAsFunction(_ path: PathBytes, templates: [String: Template]) -> Outcome {
        handler.run(invocation(path, templates: templates))
    }

    /// Creates the invocation that the handler receives for the file.
    func invocation(_ path: PathBytes, templates: [String: Template]) -> Invocation {
        var snapshot = snapshot
        if snapshot == nil, case .present(let seen) = KernelFileSystem().stat(path) { snapshot = seen }
        let event = FileEvent.sample(.created, path, root: root ?? path.parent, snapshot ?? .sample())
        var job = Job(id: JobID("01J"), rule: "r", event: event)
        job.attempt = attempt
        job.isInterrupted = isInterrupted
        var invocation = Invocation(
            job: job, rule: SourcePosition(file: "rules.yaml", line: 1, column: 1), baseDirectory: directory,
            maximumAttempts: 5, parameters: .object([:]), roots: roots, now: event.time,
            timeout: timeout, stop: stop, log: log.logger)
        invocation.fillIn(.object(templates.mapValues { .text($0) }))
        if case .object(var members) = invocation.parameters {
            members.merge(further) { _, new in new }
            invocation.parameters = .object(members)
        }
        invocation.expectsSettled = expectsSettled
        return invocation
    }
}

/// Lists all entries below a directory: files as `relative path: content`, directories as `path/`, links as
/// `path -> target`.
func listing(_ directory: PathBytes, _ prefix: String = "") -> [String] {
    TestFile.names(in: directory).flatMap { name -> [String] in
        let path = directory.appending(name)
        let shown = prefix + PathBytes(name).description
        guard case .present(let snapshot) = KernelFileSystem().stat(path) else { return [] }
        switch snapshot.type {
        case .directory:
            let inside = listing(path, shown + "/")
            return inside.isEmpty ? [shown + "/"] : inside
        case .file:
            let content = TestFile.read(path) ?? Array("?".utf8)
            let text = content.count > 40 ? "\(content.count) bytes" : String(decoding: content, as: UTF8.self)
            return ["\(shown): \(text)"]
        case .symlink: return ["\(shown) -> \(target(of: path))"]
        case .other: return ["\(shown) other"]
        }
    }
}

private func target(of link: PathBytes) -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = link.withCString { path in
        buffer.withUnsafeMutableBytes { bytes in
            bytes.withMemoryRebound(to: CChar.self) { $0.baseAddress.map { readlink(path, $0, 4096) } ?? 0 }
        }
    }
    return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
}

/// Returns the metadata of a file that must exist.
func metadata(_ path: PathBytes) throws -> Snapshot {
    guard case .present(let snapshot) = KernelFileSystem().stat(path) else {
        throw Missing(path: path)
    }
    return snapshot
}

struct Missing: Error { var path: PathBytes }

/// A directory on the file system of /dev/shm.
///
/// The initializer returns nil if /tmp is on the same file system.
final class OtherFileSystem {
    let root: PathBytes

    init?() {
        var template = Array("/dev/shm/alight-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { return nil }
        root = PathBytes(template.dropLast().map { UInt8(bitPattern: $0) })
        guard case .present(let here) = KernelFileSystem().stat("/tmp"),
            case .present(let there) = KernelFileSystem().stat(root),
            (here.identity.deviceMajor, here.identity.deviceMinor)
                != (there.identity.deviceMajor, there.identity.deviceMinor)
        else { return nil }
    }

    deinit { TestFile.removeTree(root) }
}
