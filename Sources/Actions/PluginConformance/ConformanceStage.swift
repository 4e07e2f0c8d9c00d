import ActionAPI
import Foundation
import Glibc
import JSON
import Programs
import Rules
import System

/// The directories of one case: the plugin's files, its home, and its scratch directory.
struct ConformanceStage {
    let directory: PathBytes
    /// The directory that `@SCRATCH@` stands for; the watched directory of the events.
    let files: PathBytes
    let home: PathBytes
    let scratch: PathBytes

    /// Creates the directories.
    ///
    /// - Parameters:
    ///   - base: The directory of the whole test.
    ///   - name: The unique name of the case.
    ///   - testdata: A directory whose content is copied to `files`.
    /// - Throws: The reason why that failed.
    init(in base: PathBytes, name: String, testdata: PathBytes?) throws(HandlerProblem) {
        directory = base.appending(name)
        files = directory.appending("files")
        home = directory.appending("home")
        scratch = directory.appending("scratch")
        for path in [directory, files, home, scratch] where path.withCString({ mkdir($0, 0o700) }) != 0 {
            let reason = SystemError(errno: errno).description
            throw HandlerProblem(
                message: "cannot create the directory '\(path)': \(reason)", help: "set TMPDIR to another directory")
        }
        guard let testdata else { return }
        for name in (try? KernelFileSystem().names(in: testdata)) ?? [] {
            let target = files.appending(name.bytes)
            do {
                try FileManager.default.copyItem(
                    atPath: testdata.appending(name.bytes).description, toPath: target.description)
            } catch {
                throw HandlerProblem(message: "cannot copy '\(name)' from '\(testdata)': \(error)", help: nil)
            }
        }
    }

    static func makeDirectory(_ path: PathBytes) {
        try? FileManager.default.createDirectory(
            atPath: path.description, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    /// Empties the scratch directory, as for each attempt.
    func renewScratch() {
        remove(scratch)
        Self.makeDirectory(scratch)
    }

    /// Writes a file, or a directory with such a file in it if the plugin only accepts directories.
    func write(_ content: [UInt8], to path: PathBytes, asDirectory: Bool) {
        var path = path
        if asDirectory {
            _ = path.withCString { mkdir($0, 0o755) }
            path = path.appending("file")
        }
        guard let file = path.withCString({ fopen($0, "we") }) else { return }
        fwrite(content, 1, content.count, file)
        fclose(file)
    }

    func shown(_ path: PathBytes) -> String {
        path.relative(to: directory).map { PathBytes($0).description } ?? path.description
    }

    func remove(_ path: PathBytes) { try? ScratchDirectories.remove(path) }

    /// Returns the environment that the protocol specifies for a request; without a request, that of every call.
    ///
    /// `request.json` may leave out members that a request always has.
    func environment(
        _ hostEnvironment: ProgramEnvironment, request: [String: JSONValue]? = nil
    ) -> [(name: String, value: [UInt8])] {
        var own = hostEnvironment
        own.home = home
        let variables = own.variables + [("TMPDIR", scratch.bytes)]
        guard let request else { return variables }
        let event = request["events"]?.array?.first?.object
        let attempt = request["attempt"]?.double.map { "\(Int($0))" } ?? "1"
        func bytes(_ name: String, in object: [String: JSONValue]?) -> [UInt8] { object?.bytes(name) ?? [] }
        return variables
            + RequestVariables.list(
                id: bytes("id", in: request), attempt: Array(attempt.utf8),
                rule: bytes("name", in: request["rule"]?.object), event: bytes("event", in: event),
                path: bytes("path", in: event), from: bytes("from", in: event), root: bytes("root", in: event),
                relative: bytes("relative", in: event), reason: bytes("message", in: request["previous"]?.object),
                scratch: request["scratch"]?.bytes ?? scratch.bytes)
    }
}

extension [String: JSONValue] {
    /// The members as one line of JSON, with its newline.
    var input: [UInt8] { lineBytes + [UInt8(ascii: "\n")] }
}
