package import JSON
package import Rules
import System

// The JSON of an undoable change: an object with the word `did` and its paths.
extension FileChange: JSONRecord {
    package static var blank: FileChange { FileChange(.madeFolder(""), left: .blank) }

    package mutating func code(with json: inout JSONCoder) {
        var did = kind.word
        json.member("did", &did)
        // The word that was read differs.
        var paths = did == kind.word ? kind.paths : Array(repeating: "", count: did.pathNames.count)
        for (index, name) in did.pathNames.enumerated() { json.member(name, &paths[index]) }
        var sealed = kind.sealed
        if did == .unpacked { json.member("sealed", &sealed) }
        kind = Kind(did, paths, sealed: sealed)
        json.member("left", &left)
    }
}

extension FileChange.Word: JSONForm {}

extension FileMark: JSONRecord {
    package static var blank: FileMark { FileMark(.unseen) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("type", &type)
        json.member("size", &size)
        json.member("mtime", &modified)
        identity.code(with: &json)
    }
}
