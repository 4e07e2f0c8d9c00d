import JSON
import Rules
import Storage
import System

// The changes of files as text and as JSON.
extension FileChange {
    /// The change as text: `moved '/in/a' to '/out/a'`.
    var words: String {
        func quoted(_ path: PathBytes) -> String { "'\(Display.path(path))'" }
        return switch kind {
        case .moved(let from, let to): "moved \(quoted(from)) to \(quoted(to))"
        case .made(let path, let source): "created \(quoted(path)) from \(quoted(source))"
        case .unpacked(let path, let source, _): "unpacked \(quoted(source)) into \(quoted(path))"
        case .madeFolder(let path): "created the directory \(quoted(path))"
        case .trashed(let from, let to, _): "moved \(quoted(from)) to the trash as \(quoted(to))"
        case .overwritten(let path): "replaced what was at \(quoted(path))"
        case .removed(let path, let twin): "removed \(quoted(path)), which had the content of \(quoted(twin))"
        }
    }

    /// The undo of the change as text: `move '/out/a' back to '/in/a'`.
    var wordsOfUndo: String {
        func quoted(_ path: PathBytes) -> String { "'\(Display.path(path))'" }
        return switch kind {
        case .moved(let from, let to), .trashed(let from, let to, _): "move \(quoted(to)) back to \(quoted(from))"
        case .made(let path, _): "remove \(quoted(path))"
        case .unpacked(let path, _, _): "remove what was unpacked into \(quoted(path))"
        case .madeFolder(let path): "remove the directory \(quoted(path)) if it is empty"
        case .overwritten(let path): "restore what was at \(quoted(path))"
        case .removed(let path, _): "restore \(quoted(path))"
        }
    }

    /// Returns the JSON object; `reason` explains why the change could not be undone.
    func object(undo: UndoRecord?, at index: Int) -> [String: JSONValue] {
        var object: [String: JSONValue] = ["did": .string(kind.word.rawValue)]
        for (name, path) in zip(kind.word.pathNames.prefix(2), kind.paths) { object.add(name, path) }
        if let undo {
            object["undone"] = .bool(undo.reasons[index] == nil)
            if let reason = undo.reasons[index] { object["reason"] = .string(reason) }
        }
        return object
    }
}
