import ActionAPI
import Glibc
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// A row of a table: the files before, the action for one of them, and the files after.
struct FileCase: Sendable, CustomTestStringConvertible {
    var name: String
    /// The files before, relative to the tree.
    ///
    /// A directory ends in a slash; the content of a link is `-> target`.
    var before = ["in/a.txt": "new"]
    var source = "in/a.txt"
    /// String parameters.
    ///
    /// A leading `@/` is replaced by the tree.
    var with: [String: String] = [:]
    var further: [String: Parameter] = [:]
    var result = PluginResponse.Outcome.succeeded
    var code: String?
    /// The output, relative to the tree.
    var output: String?
    /// Whether its source is an output as well.
    var changesSource = false
    /// All files after the action, in the format of `listing`.
    var after: [String]
    /// The recorded changes, in the format of `text(below:)`.
    var changes: [String]?
    var testDescription: String { name }
    private var outputs: [String] { [output, changesSource ? source : nil].compactMap(\.self) }

    func play(_ handler: any Handler, sourceLocation: SourceLocation = #_sourceLocation) {
        withTempTree { tree in
            for (path, content) in before.sorted(by: { $0.key < $1.key }) { Self.make(tree.path(path), content) }
            let outcome = run(handler, tree)
            #expect(outcome.result == result, "\(outcome.message)", sourceLocation: sourceLocation)
            #expect(outcome.code == code, "\(outcome.message)", sourceLocation: sourceLocation)
            #expect(
                outcome.outputs == outputs.map { tree.path($0) }, "\(outcome.outputs)",
                sourceLocation: sourceLocation)
            #expect(!outcome.message.isEmpty, sourceLocation: sourceLocation)
            #expect(Set(listing(tree.root)) == Set(after), "\(outcome.message)", sourceLocation: sourceLocation)
            if let changes {
                let root = tree.root
                #expect(outcome.changes.map { $0.text(below: root) } == changes, sourceLocation: sourceLocation)
            }
            // Power was lost before the outcome was stored: the second run must do no harm.
            guard result == .succeeded else { return }
            var again = BuiltInRun(handler)
            again.isInterrupted = true
            again.attempt = 2
            let second = run(again, tree)
            #expect(
                [.succeeded, .skipped].contains(second.result), "\(second.message)", sourceLocation: sourceLocation)
            #expect(Set(listing(tree.root)) == Set(after), "\(second.message)", sourceLocation: sourceLocation)
        }
    }

    func run(_ handler: any Handler, _ tree: borrowing TemporaryTree) -> Outcome { run(BuiltInRun(handler), tree) }

    func run(_ run: BuiltInRun, _ tree: borrowing TemporaryTree) -> Outcome {
        var run = run
        run.directory = tree.root
        run.root = tree.path("in")
        run.further = further
        let root = tree.root
        return run(
            tree.path(source),
            with.mapValues { $0.hasPrefix("@/") ? root.appending(String($0.dropFirst(2))) : PathBytes($0) })
    }

    static func make(_ path: PathBytes, _ content: String) {
        if path.bytes.last == .slash {
            TestFile.makeDirectory(path.normalized)
        } else if content.hasPrefix("-> ") {
            TestFile.makeDirectory(path.parent)
            _ = path.withCString { symlink(String(content.dropFirst(3)), $0) }
        } else {
            TestFile.write(path, content)
        }
    }
}

extension FileChange {
    /// Returns a short form such as `moved in/a out/a`, with paths relative to the directory.
    func text(below root: PathBytes) -> String {
        func short(_ path: PathBytes) -> String {
            path.relative(to: root).map { PathBytes($0).description } ?? path.description
        }
        return switch kind {
        case .moved(let from, let to): "moved \(short(from)) \(short(to))"
        case .made(let path, let source): "made \(short(path)) of \(short(source))"
        case .unpacked(let path, let source, _): "unpacked \(short(source)) into \(short(path))"
        case .madeDirectory(let path): "folder \(short(path))"
        case .trashed(let from, let to, _): "trashed \(short(from)) \(short(to))"
        case .overwritten(let path): "overwritten \(short(path))"
        case .removed(let path, let twin): "removed \(short(path)) for \(short(twin))"
        }
    }
}
