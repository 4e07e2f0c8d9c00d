package import ActionAPI
import FileEvents
import PluginProtocol
package import Rules
package import System

/// The `move` action: gives the file another path; between file systems it copies, and removes the source last.
package struct MoveHandler: Handler {
    private let trash: Trash

    package init(trash: Trash = Trash(home: nil)) { self.trash = trash }

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "move"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "to": Destination.toSchema, "on_conflict": Conflict.schema, "allow": Jail.schema,
                "keep": CopyOptions.keepSchema(default: FileMove.kept), "verify": CopyOptions.verifySchema,
            ],
            required: ["to"], additionalProperties: false),
        events: [.created, .modified, .moved, .attributes], traits: [.isBrief, .removesInput])

    package func plannedOutputs(of invocation: Invocation) -> [PathBytes] { Destination.planned(for: invocation) }

    package func run(_ invocation: Invocation) -> Outcome {
        Outcome.of { () throws(FileError) in
            let move = FileMove(invocation, done: "moved")
            switch try open(invocation, move) {
            case .gone(let outcome): return outcome
            case .opened(let source, let place): return try move.run(source, to: place)
            }
        }
    }

    /// Moves several files; the copies on another file system are flushed with one call for all.
    package func run(_ invocations: [Invocation]) -> [Outcome] {
        FileSystemFlush.run(invocations, alone: { run($0) }, together: { move(together: $0) })
    }

    package func isDone(_ invocation: Invocation) -> Bool {
        let found = try? { () throws(FileError) in
            let destination = try Destination(invocation)
            var changes: [FileChange] = []
            let folder = try Jail(invocation).open(destination.path.parent, making: false, noting: &changes)
            let place = FilePlace(invocation, folder, destination.name, destination.conflict, trash: trash)
            return try place.earlierMove()
        }()
        return found.flatMap(\.self) != nil
    }

    private enum Opening {
        case gone(Outcome)
        case opened(SourceFile, FilePlace)
    }

    private func open(_ invocation: Invocation, _ move: FileMove) throws(FileError) -> Opening {
        let source: SourceFile
        do throws(FileError) {
            source = try SourceFile(invocation)
        } catch {
            guard error.isOfAnotherFile, invocation.hasBegunBefore else { throw error }
            return .gone(try move.afterwards(FilePlace(invocation, trash: trash), error))
        }
        let place = try FilePlace(invocation, trash: trash)
        if let outcome = try move.earlier(place, than: source) { return .gone(outcome) }
        return .opened(source, place)
    }

    /// The state of one move among several.
    private enum Stage {
        case over(Outcome)
        case carried(FileMove.Carried)
        case placed(FileMove.Carried, PathBytes)
        /// There are not enough descriptors for so many files at once.
        case crowded
    }

    private func move(together invocations: ArraySlice<Invocation>) -> [Outcome] {
        let moves = invocations.map { FileMove($0, done: "moved") }
        var stages = zip(invocations, moves).map { invocation, move in
            Self.stage { () throws(FileError) in
                if invocation.stop.isRaised { return .over(.interrupted("Alight stops")) }
                switch try open(invocation, move) {
                case .gone(let outcome): return .over(outcome)
                case .opened(let source, let place):
                    switch try move.begin(source, to: place, isFlushed: false) {
                    case .over(let outcome): return .over(outcome)
                    case .carried(let carried): return .carried(carried)
                    }
                }
            }
        }
        var flush = FileSystemFlush()
        var wanted: Set<PathBytes> = []
        for (index, stage) in stages.enumerated() {
            guard case .carried(var carried) = stage else { continue }
            // If two files have the same destination, the second is published after the move of the first has finished.
            if !wanted.insert(carried.place.path).inserted { finish(&stages, moves) }
            stages[index] = Self.stage { () throws(FileError) in
                defer { carried.staged.discard() }
                try flush.flush(carried.staged, for: carried.place)
                switch try moves[index].publish(&carried) {
                case .over(let outcome): return .over(outcome)
                case .placed(let name): return .placed(carried, name)
                }
            }
        }
        finish(&stages, moves)
        let outcomes = stages.map { if case .over(let outcome) = $0 { outcome } else { Outcome?.none } }
        stages = []
        return zip(outcomes, invocations).map { $0 ?? run($1) }
    }

    /// Removes the sources of the files that were placed, after these are on the disk.
    private func finish(_ stages: inout [Stage], _ moves: [FileMove]) {
        var targets = DirectoryFlush()
        for case .placed(let carried, _) in stages { targets.add(carried.place.folder) }
        targets.flush()
        var sources = DirectoryFlush()
        for (index, stage) in stages.enumerated() {
            guard case .placed(var carried, let name) = stage else { continue }
            sources.add(carried.source.folder)
            stages[index] = .over(
                Outcome.of { () throws(FileError) in try moves[index].removeSource(of: &carried, name) })
        }
        sources.flush()
    }

    private static func stage(_ work: () throws(FileError) -> Stage) -> Stage {
        do throws(FileError) {
            return try work()
        } catch {
            return error.isOfCrowd ? .crowded : .over(error.outcome)
        }
    }
}

extension Invocation {
    /// Whether an earlier attempt may have done part of the work.
    var hasBegunBefore: Bool { job.attempt > 1 || job.isInterrupted }
}
