package import ActionAPI
import CAlightLinux
import PluginProtocol
package import Rules
package import System

/// The `copy`, `move` and `rename` actions.
///
/// The bytes of a copy are written to a file without a name in the destination directory, and flushed. Then the file
/// gets its final name, so a process that watches the directory sees one complete file. A move between file systems
/// copies, and removes the source last.
package struct TransferHandler: BlockingHandler {
    private let verb: FileTransfer.Verb
    private let trash: Trash
    package let summary: HandlerDescription

    package static func copy(trash: Trash = Trash(home: nil)) -> TransferHandler {
        var parameters = Destination.parameters(CopyOptions.parameters(default: FileTransfer.Verb.copied.retained))
        parameters["durable"] = CopyOptions.durableSchema
        return TransferHandler(
            verb: .copied, trash: trash,
            summary: HandlerDescription(
                "copy", parameters, required: ["to"], types: [.file], traits: [.sharesFile, .isBrief]))
    }

    package static func move(trash: Trash = Trash(home: nil)) -> TransferHandler {
        TransferHandler(
            verb: .moved, trash: trash,
            summary: HandlerDescription(
                "move", Destination.parameters(CopyOptions.parameters(default: FileTransfer.Verb.moved.retained)),
                required: ["to"], traits: [.isBrief, .setsInputAside], outputTypes: nil,
                removal: InputRemoval("moves", to: .destination)))
    }

    /// Creates the handler that gives the file another name in its directory.
    package static func rename(trash: Trash = Trash(home: nil)) -> TransferHandler {
        let name = ParameterSchema.string(
            "The new name, without a directory.", example: "${stem}-${mtime:%Y-%m-%d}.${extension}")
        return TransferHandler(
            verb: .renamed, trash: trash,
            summary: HandlerDescription(
                "rename", ["name": name, "on_conflict": Conflict.schema], required: ["name"],
                traits: [.isBrief, .setsInputAside], removal: InputRemoval("renames", to: .name(parameter: "name"))))
    }

    package func plannedOutputs(of invocation: Invocation) -> [PathBytes] { Destination.planned(for: invocation) }

    package func run(_ invocation: Invocation) -> Outcome { run([invocation])[0] }

    /// Transfers the files of a batch in groups, in which the copies are flushed by one call for the whole file system.
    package func run(_ invocations: [Invocation]) -> [Outcome] { TransferGroup.run(invocations, transfer) }

    package func isDone(_ invocation: Invocation) -> Bool {
        verb != .copied && transfer(invocation, OpenDirectories()).isDone
    }

    private func transfer(_ invocation: Invocation, _ directories: OpenDirectories) -> FileTransfer {
        FileTransfer(invocation, verb, trash: trash, among: directories)
    }
}

/// Transfers of several files whose copies are flushed by one call of syncfs(2) per file system.
///
/// All copies are written before the first of them is flushed, and each directory is opened once.
struct TransferGroup {
    /// The minimum number of files; with fewer, separate flushes are better, since syncfs(2) also flushes unrelated
    /// files.
    private static let fewest = 4
    /// The maximum number of files at once, since each one holds a descriptor, or three if it is moved.
    private static let most = 256

    private let transfers: [FileTransfer]
    /// The state of each transfer; nil if there are not enough descriptors for so many files at once.
    private var stages: [FileTransfer.Stage?] = []
    /// The result of each flush by device: 0, or the errno.
    private var flushed: [UInt64: Int32] = [:]

    /// Transfers files in groups that share a flush, or one by one if there are few.
    ///
    /// - Parameters:
    ///   - invocations: The invocations, one per file.
    ///   - transfer: Creates the transfer of a file.
    /// - Returns: The outcomes, in order.
    static func run(
        _ invocations: [Invocation], _ transfer: (Invocation, OpenDirectories) -> FileTransfer
    ) -> [Outcome] {
        var outcomes: [Outcome] = []
        while outcomes.count < invocations.count {
            let directories = OpenDirectories()
            let files = invocations[outcomes.count...].prefix(invocations.count < fewest ? 1 : most)
            var group = TransferGroup(transfers: files.map { transfer($0, directories) })
            outcomes += group.run()
        }
        return outcomes
    }

    private mutating func run() -> [Outcome] {
        let isAlone = transfers.count == 1
        stages = transfers.map { transfer in
            Self.stage(isAlone) { () throws(FileError) in
                if transfer.invocation.stop.isRaised { return .over(.interrupted("Alight stops")) }
                return try transfer.start(isFlushed: isAlone)
            }
        }
        var wanted: Set<PathBytes> = []
        for index in stages.indices {
            guard case .staged(let copy)? = stages[index] else { continue }
            // If two files are moved to the same destination, the second is published after the move of the first has
            // finished.
            if copy.source != nil, !wanted.insert(copy.location.path).inserted { finish() }
            stages[index] = Self.stage(isAlone) { () throws(FileError) in
                if transfers[index].options.isDurable, !isAlone { try flush(copy) }
                return try transfers[index].publish(copy)
            }
        }
        finish()
        let outcomes = stages.map { stage -> Outcome? in if case .over(let outcome)? = stage { outcome } else { nil } }
        // Closes the files before those without an outcome are transferred one by one.
        stages = []
        return zip(outcomes, transfers).map { outcome, transfer in
            var alone = TransferGroup(transfers: [transfer])
            return outcome ?? alone.run()[0]
        }
    }

    /// Finishes the transfers of the files that were placed, after these are on the disk.
    private mutating func finish() {
        var targets: [Int32: DirectoryHandle] = [:]
        for index in stages.indices {
            guard case .placed(let copy, _)? = stages[index], transfers[index].options.isDurable else { continue }
            targets[copy.location.directory.descriptor] = copy.location.directory
        }
        for directory in targets.values { directory.flush() }
        var sources: [Int32: DirectoryHandle] = [:]
        for index in stages.indices {
            guard case .placed(let copy, let name)? = stages[index] else { continue }
            if let source = copy.source { sources[source.directory.descriptor] = source.directory }
            stages[index] = .over(Outcome.of { () throws(FileError) in try transfers[index].finish(copy, name) })
        }
        for directory in sources.values { directory.flush() }
    }

    /// Flushes the file system of a copy, unless that has been done.
    private mutating func flush(_ copy: FileTransfer.Copy) throws(FileError) {
        let device = copy.made.identity.device
        let error = flushed[device] ?? cal_sync_file_system(copy.file.descriptor)
        flushed[device] = error
        guard error == 0 else { throw FileError(error, "cannot flush the file system of '\(copy.location.path)'") }
    }

    private static func stage(
        _ isAlone: Bool, _ work: () throws(FileError) -> FileTransfer.Stage
    ) -> FileTransfer.Stage? {
        do throws(FileError) {
            return try work()
        } catch {
            return error.hasNoDescriptors && !isAlone ? nil : .over(error.outcome)
        }
    }
}
