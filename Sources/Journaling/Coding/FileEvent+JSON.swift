import FileEvents
import PluginProtocol

// The text in the column `facts` of a job. Members that are nil, false or empty are left out.
extension FileEvent {
    /// Writes the event with all that belongs to it.
    func write(to json: inout JSONOutput) {
        json.object { json in
            json.key("event")
            json.string(kind.rawValue)
            json.key("path")
            json.text(path.bytes)
            json.key("root")
            json.text(root.bytes)
            if let from {
                json.key("from")
                json.text(from.bytes)
            }
            json.key("snapshot")
            snapshot.write(to: &json)
            if let before {
                json.key("before")
                before.write(to: &json)
            }
            if !changed.isEmpty {
                json.key("changed")
                json.array { json in
                    for word in changed {
                        json.element()
                        json.string(word)
                    }
                }
            }
            json.flag("replaced", isReplaced)
            json.flag("by_move", isByMove)
            if !sameAs.isEmpty {
                json.key("same_as")
                json.array { json in
                    for path in sameAs {
                        json.element()
                        json.text(path.bytes)
                    }
                }
            }
            if let children {
                json.key("children")
                json.number(Int64(children))
            }
            if let tail {
                json.key("tail")
                tail.write(to: &json)
            }
            author.write(to: &json)
            json.key("origin")
            json.string(origin.rawValue)
            json.key("time")
            json.time(time)
        }
    }

    /// Reads what ``write(to:)`` wrote; nil when it is something else.
    init?(_ json: JSONValue) {
        guard let kind = json.text("event").flatMap(EventKind.init), let path = json.path("path"),
            let root = json.path("root"), let snapshot = json["snapshot"].flatMap(Snapshot.init),
            let time = json.time("time")
        else { return nil }
        self.init(
            kind: kind, path: path, root: root, from: json.path("from"), snapshot: snapshot,
            before: json["before"].flatMap(Snapshot.init), changed: json["changed"]?.array?.compactMap(\.string) ?? [],
            isReplaced: json.isSet("replaced"), isByMove: json.isSet("by_move"),
            sameAs: json["same_as"]?.array?.compactMap { $0.bytes.map(PathBytes.init) } ?? [],
            children: json.integer("children").map { Int($0) }, tail: json["tail"].flatMap(TailText.init),
            origin: json.text("origin").flatMap(EventOrigin.init) ?? .live, time: time)
        author = Author(json["by"])
    }
}

extension Author {
    /// Writes the member `by`: an object of what is known, or a word for why nothing is.
    fileprivate func write(to json: inout JSONOutput) {
        switch self {
        case .notAsked: return
        case .unknown(let reason):
            json.key("by")
            json.string(reason.rawValue)
        case .process(let process):
            json.key("by")
            json.object { json in
                json.key("pid")
                json.number(Int64(process.pid))
                if let name = process.name {
                    json.key("comm")
                    json.text(name.bytes)
                }
                if let executable = process.executable {
                    json.key("exe")
                    json.text(executable.bytes)
                }
                if let uid = process.uid {
                    json.key("uid")
                    json.number(Int64(uid))
                }
            }
        }
    }

    fileprivate init(_ json: JSONValue?) {
        if let json, let pid = json.integer("pid").flatMap({ Int32(exactly: $0) }) {
            self = .process(
                WritingProcess(
                    pid: pid, name: json.path("comm"), executable: json.path("exe"), uid: json.unsigned32("uid")))
        } else {
            self = json?.string.map { .unknown(UnknownAuthor(rawValue: $0) ?? .unseen) } ?? .notAsked
        }
    }
}

extension TailText {
    fileprivate func write(to json: inout JSONOutput) {
        json.object { json in
            json.key("offset")
            json.number(Int64(bitPattern: offset))
            json.key("text")
            json.text(bytes)
            json.flag("reset", isReset)
            json.key("remaining")
            json.number(Int64(bitPattern: remaining))
        }
    }

    fileprivate init?(_ json: JSONValue) {
        guard let offset = json.unsigned("offset"), let bytes = json["text"]?.bytes,
            let remaining = json.unsigned("remaining")
        else { return nil }
        self.init(offset: offset, bytes: bytes, isReset: json.isSet("reset"), remaining: remaining)
    }
}

extension Snapshot {
    func write(to json: inout JSONOutput) {
        json.object { json in
            json.key("type")
            json.string(type.rawValue)
            json.key("size")
            json.number(Int64(bitPattern: size))
            json.key("mtime")
            json.time(modified)
            json.key("ctime")
            json.time(changed)
            if let born {
                json.key("btime")
                json.time(born)
            }
            json.key("device")
            json.number(identity.device)
            json.key("inode")
            json.number(Int64(bitPattern: identity.inode))
            json.key("birth")
            json.number(identity.birth)
            json.key("mode")
            json.number(Int64(mode))
            json.key("uid")
            json.number(Int64(uid))
            json.key("gid")
            json.number(Int64(gid))
            json.key("nlink")
            json.number(Int64(links))
            if mount != 0 {
                json.key("mount")
                json.number(Int64(bitPattern: mount))
            }
            if let extended {
                json.key("xattrs")
                extended.write(to: &json)
            }
            if let digest {
                json.key("digest")
                json.base64(digest)
            }
            if let delivered {
                json.key("delivered")
                json.number(Int64(bitPattern: delivered))
            }
        }
    }

    init?(_ json: JSONValue) {
        guard let type = json.text("type").flatMap(FileType.init), let size = json.unsigned("size"),
            let modified = json.time("mtime"), let changed = json.time("ctime"), let device = json.integer("device"),
            let inode = json.unsigned("inode"), let birth = json.integer("birth"),
            let mode = json.integer("mode").flatMap({ UInt16(exactly: $0) }), let uid = json.unsigned32("uid"),
            let gid = json.unsigned32("gid"), let links = json.unsigned32("nlink")
        else { return nil }
        self.init(
            identity: FileIdentity(device: device, inode: inode, birth: birth), type: type, size: size,
            modified: modified, changed: changed, born: json.time("btime"), mode: mode, uid: uid, gid: gid,
            links: links, mount: json.unsigned("mount") ?? 0,
            extended: json["xattrs"].flatMap { [ExtendedAttribute]($0) },
            digest: json.text("digest").flatMap { Base64.decoded($0.utf8) }, delivered: json.unsigned("delivered"))
    }
}

extension [ExtendedAttribute] {
    /// Writes an array of names and values; the values in base64.
    func write(to json: inout JSONOutput) {
        json.array { json in
            for attribute in self {
                json.element()
                json.object { json in
                    json.key("name")
                    json.text(attribute.name.bytes)
                    json.key("value")
                    json.base64(attribute.value)
                }
            }
        }
    }

    init?(_ json: JSONValue) {
        guard let elements = json.array else { return nil }
        self = []
        for element in elements {
            guard let name = element.path("name"),
                let value = element.text("value").flatMap({ Base64.decoded($0.utf8) })
            else { return nil }
            append(ExtendedAttribute(name: name, value: value))
        }
    }
}

extension FileIdentity {
    /// Both numbers of the device in one, as the journal's columns keep it.
    var device: Int64 { Int64(bitPattern: UInt64(deviceMajor) << 32 | UInt64(deviceMinor)) }

    init(device: Int64, inode: UInt64, birth: Int64) {
        let device = UInt64(bitPattern: device)
        self.init(
            deviceMajor: UInt32(truncatingIfNeeded: device >> 32), deviceMinor: UInt32(truncatingIfNeeded: device),
            inode: inode, birth: birth)
    }
}
