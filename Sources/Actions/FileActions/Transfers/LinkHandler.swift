package import ActionAPI
import CAlightLinux
import Glibc
import PluginProtocol
package import Rules
package import System

/// The `link` action: creates a link to the file.
package struct LinkHandler: FileHandler {
    private enum Kind: String { case symbolic, hard }

    private let trash: Trash

    package init(trash: Trash = Trash(home: nil)) { self.trash = trash }

    package let summary = HandlerDescription(
        "link",
        Destination.parameters([
            "kind": .choice(
                ["symbolic", "hard"], "The kind of link: symbolic, or hard, which is another name of the same file.",
                default: "symbolic"),
            "relative": .flag(
                "Whether the target of a symbolic link is relative to the link's directory, such as '../in/a'.",
                default: false),
        ]),
        // A hard link is a regular file, but symbolic links are far more common.
        required: ["to"], traits: .isBrief, outputTypes: [.symlink])

    package func plannedOutputs(of invocation: Invocation) -> [PathBytes] { Destination.planned(for: invocation) }

    package func handle(_ invocation: Invocation) throws(FileError) -> Outcome {
        let source = try SourceFile(invocation)
        let location = try FileLocation(invocation, trash: trash)
        guard !location.isSame(as: source) else {
            return Outcome(.failed, "the file would be linked to itself", code: "same-path")
        }
        let kind = invocation.text("kind").flatMap(Kind.init(rawValue:)) ?? .symbolic
        if kind == .hard, source.metadata.type == .directory {
            return Outcome(
                .failed, "'\(source.path)' is a directory, and directories can't have hard links", code: "not-a-file")
        }
        let target = invocation.flag("relative", default: false) ? relative(source.path, location) : source.path
        if let name = earlier(source, target, kind, location) {
            if invocation.hasStartedBefore { return location.finished(name) }
            let message = "'\(location.directory.path(of: name))' already leads to it"
            return location.outcome(Outcome(.skipped, message, code: "exists"))
        }
        let directory = location.directory
        let make: (PathBytes) -> Int32 = { name in
            switch kind {
            case .symbolic: directory.makeLink(name, to: target)
            // Linked by the descriptor, so that it is the file that had settled.
            case .hard: name.withCString { cal_link_descriptor_in(source.file.descriptor, directory.descriptor, $0) }
            }
        }
        let candidate = FileLocation.Candidate(
            put: make,
            replace: { name in
                let temporary = TemporaryName.staged(location.name)
                let error = make(temporary)
                guard error == 0 else { return error }
                let result = directory.rename(temporary, to: directory, name, CAL_RENAME_REPLACING)
                // rename(2) does nothing between two names of one file, and the temporary name remains.
                directory.unlink(temporary)
                return result
            })
        do throws(FileError) {
            guard case .placed(let name) = try location.location(candidate) else { return location.skipped }
            try location.record(name) { .made($0, source: source.path) }
            var outcome = location.succeeded(name) { "linked at \($0)" }
            // The link count of the file has changed as well.
            if kind == .hard { outcome.outputs.append(source.path) }
            return outcome
        } catch {
            guard error.errno == EXDEV else { throw error }
            throw .failed(
                "'\(location.path)' is on another file system, where the file can't have a hard link; "
                    + "use 'kind: symbolic'", code: "cross-device")
        }
    }

    /// Returns the name of an existing link identical to this one, which an interrupted attempt may have left with a
    /// number.
    private func earlier(_ source: SourceFile, _ target: PathBytes, _ kind: Kind, _ location: FileLocation)
        -> PathBytes?
    {
        try? location.firstName(numbered: location.invocation.hasStartedBefore ? [.rename] : []) { name, there in
            switch kind {
            case .hard: there.identity == source.metadata.identity
            case .symbolic: there.type == .symlink && location.directory.target(of: name) == target
            }
        }
    }

    /// Returns the relative path from the link's directory to the file, with both directories resolved.
    private func relative(_ path: PathBytes, _ location: FileLocation) -> PathBytes {
        let from = (KernelFileSystem().resolve(location.directory.path) ?? location.directory.path).bytes.split(
            separator: .slash)
        let directory = KernelFileSystem().resolve(path.parent) ?? path.parent
        let to = directory.appending(path.lastComponent).bytes.split(separator: .slash)
        let shared = zip(from, to.dropLast()).prefix { $0.elementsEqual($1) }.count
        let up = [ArraySlice<UInt8>](repeating: [.dot, .dot], count: from.count - shared)
        return PathBytes((up + to[shared...]).joined(separator: [.slash]))
    }
}
