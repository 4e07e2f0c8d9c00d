import FileEvents
import PluginProtocol
import Rules

// The text of what can be taken back: an array of objects, each with the word `did` and the paths that belong to it.
extension [FileChange] {
    func write(to json: inout JSONOutput) {
        json.array { json in
            for change in self {
                json.element()
                change.write(to: &json)
            }
        }
    }

    init?(_ json: JSONValue) {
        guard let elements = json.array else { return nil }
        let changes = elements.compactMap(FileChange.init)
        guard changes.count == elements.count else { return nil }
        self = changes
    }
}

extension FileChange {
    fileprivate func write(to json: inout JSONOutput) {
        func path(_ name: StaticString, _ path: PathBytes, _ json: inout JSONOutput) {
            json.key(name)
            json.text(path.bytes)
        }
        json.object { json in
            json.key("did")
            switch kind {
            case .moved(let from, let to):
                json.string("moved")
                path("from", from, &json)
                path("to", to, &json)
            case .made(let made, let source):
                json.string("made")
                path("path", made, &json)
                path("source", source, &json)
            case .unpacked(let made, let source, let sealed):
                json.string("unpacked")
                path("path", made, &json)
                path("source", source, &json)
                json.key("sealed")
                json.time(sealed)
            case .madeFolder(let made):
                json.string("made_folder")
                path("path", made, &json)
            case .trashed(let from, let to, let info):
                json.string("trashed")
                path("from", from, &json)
                path("to", to, &json)
                path("info", info, &json)
            case .overwritten(let replaced):
                json.string("overwritten")
                path("path", replaced, &json)
            case .removed(let removed, let twin):
                json.string("removed")
                path("path", removed, &json)
                path("twin", twin, &json)
            }
            json.key("left")
            left.write(to: &json)
        }
    }

    fileprivate init?(_ json: JSONValue) {
        guard let left = json["left"].flatMap(FileMark.init) else { return nil }
        let kind: Kind
        switch json.text("did") {
        case "moved":
            guard let from = json.path("from"), let to = json.path("to") else { return nil }
            kind = .moved(from: from, to: to)
        case "made":
            guard let path = json.path("path"), let source = json.path("source") else { return nil }
            kind = .made(path, source: source)
        case "unpacked":
            guard let path = json.path("path"), let source = json.path("source"), let sealed = json.time("sealed")
            else { return nil }
            kind = .unpacked(path, source: source, sealed: sealed)
        case "made_folder":
            guard let path = json.path("path") else { return nil }
            kind = .madeFolder(path)
        case "trashed":
            guard let from = json.path("from"), let to = json.path("to"), let info = json.path("info") else {
                return nil
            }
            kind = .trashed(from: from, to: to, info: info)
        case "overwritten":
            guard let path = json.path("path") else { return nil }
            kind = .overwritten(path)
        case "removed":
            guard let path = json.path("path"), let twin = json.path("twin") else { return nil }
            kind = .removed(path, twin: twin)
        default: return nil
        }
        self.init(kind, left: left)
    }
}

extension FileMark {
    fileprivate func write(to json: inout JSONOutput) {
        json.object { json in
            json.key("type")
            json.string(type.rawValue)
            json.key("size")
            json.number(Int64(bitPattern: size))
            json.key("mtime")
            json.time(modified)
            json.key("device")
            json.number(identity.device)
            json.key("inode")
            json.number(Int64(bitPattern: identity.inode))
            json.key("birth")
            json.number(identity.birth)
        }
    }

    fileprivate init?(_ json: JSONValue) {
        guard let type = json.text("type").flatMap(FileType.init), let size = json.unsigned("size"),
            let modified = json.time("mtime"), let device = json.integer("device"),
            let inode = json.unsigned("inode"), let birth = json.integer("birth")
        else { return nil }
        self.init(
            identity: FileIdentity(device: device, inode: inode, birth: birth), type: type, size: size,
            modified: modified)
    }
}
