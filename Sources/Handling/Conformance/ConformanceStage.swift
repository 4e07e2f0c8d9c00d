import FileEvents
import Foundation
import Glibc
import PluginProtocol
import Rules
import Settling

/// The folders of one case: the plugin's files, its home, and its scratch folder.
struct ConformanceStage {
    let folder: PathBytes
    /// What `@SCRATCH@` stands for; the watched folder of the events.
    let files: PathBytes
    let home: PathBytes
    let scratch: PathBytes

    /// Makes the folders.
    ///
    /// - Parameters:
    ///   - base: The folder of the whole test.
    ///   - name: Of the case; no two are equal.
    ///   - testdata: A folder whose content is copied to `files`.
    /// - Throws: Why that can't be done.
    init(in base: PathBytes, name: String, testdata: PathBytes?) throws(HandlerProblem) {
        folder = base.appending(name)
        files = folder.appending("files")
        home = folder.appending("home")
        scratch = folder.appending("scratch")
        for path in [folder, files, home, scratch] where path.withCString({ mkdir($0, 0o700) }) != 0 {
            let reason = String(cString: strerror(errno))
            throw HandlerProblem(
                message: "cannot make the folder '\(path)': \(reason)", help: "give TMPDIR another place")
        }
        guard let testdata else { return }
        for name in DiskProbe.names(in: testdata) {
            let target = files.appending(name.bytes)
            do {
                try FileManager.default.copyItem(
                    atPath: testdata.appending(name.bytes).description, toPath: target.description)
            } catch {
                throw HandlerProblem(message: "cannot copy '\(name)' from '\(testdata)': \(error)", help: nil)
            }
        }
    }

    /// Empties the scratch folder, as each attempt finds it.
    func renewScratch() {
        try? ScratchFolders(base: folder).remove(scratch)
        _ = scratch.withCString { mkdir($0, 0o700) }
    }

    /// Writes a file; a folder with such a file in it, if the plugin takes folders alone.
    func write(_ content: [UInt8], to path: PathBytes, asFolder: Bool) {
        var path = path
        if asFolder {
            _ = path.withCString { mkdir($0, 0o755) }
            path = path.appending("file")
        }
        let descriptor = path.withCString { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644) }
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var rest = content[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    func remove(_ path: PathBytes) { try? ScratchFolders(base: folder).remove(path) }

    /// The environment that the protocol promises; without an event for what is no request.
    func environment(_ surroundings: ProgramEnvironment, request: PluginRequest?, event: FileEvent?) -> [(
        name: String, value: [UInt8]
    )] {
        var own = surroundings
        own.home = home
        var variables = own.variables + [("TMPDIR", scratch.bytes)]
        guard let request, let event else { return variables }
        let relative = event.path.relative(to: event.root) ?? event.path.lastComponent
        variables += [
            ("ALIGHT_PROTOCOL", Array("\(ProtocolVersion.current)".utf8)), ("ALIGHT_ID", Array(request.id.utf8)),
            ("ALIGHT_ATTEMPT", Array("\(request.attempt)".utf8)), ("ALIGHT_RULE", Array(request.rule.name.utf8)),
            ("ALIGHT_EVENT", Array(event.kind.rawValue.utf8)), ("ALIGHT_PATH", event.path.bytes),
            ("ALIGHT_FROM", event.from?.bytes ?? []), ("ALIGHT_ROOT", event.root.bytes),
            ("ALIGHT_RELATIVE", Array(relative)), ("ALIGHT_REASON", Array((request.previous?.message ?? "").utf8)),
            ("ALIGHT_SCRATCH", scratch.bytes),
        ]
        return variables
    }
}
