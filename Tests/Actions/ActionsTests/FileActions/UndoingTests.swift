import FileActions
import FileEvents
import Foundation
import Glibc
import Rules
import System
import Testing

/// Undoing changes on disk.
struct UndoingTests {
    let folder: TemporaryDirectory
    let event: FileEvent

    init() throws {
        folder = try TemporaryDirectory()
        for name in ["in", "in/sub", "out"] { try folder.folder(name) }
        try folder.write("in/a", "text", mode: 0o644)
        var event = Stage.event(path: folder.path.appending("in/a"))
        event.root = folder.path.appending("in")
        event.snapshot = try #require(Self.look(folder.path.appending("in/a")))
        self.event = event
    }

    static func look(_ path: PathBytes) -> Snapshot? {
        if case .present(let snapshot) = DiskProbe.look(at: path) { snapshot } else { nil }
    }

    func path(_ name: String) -> PathBytes { folder.path.appending(name) }

    func change(_ kind: FileChange.Kind, at name: String) throws -> FileChange {
        FileChange(kind, left: FileMark(try #require(Self.look(path(name)))))
    }

    func move(_ from: String, _ to: String) throws -> FileChange {
        try #require(rename(path(from).description, path(to).description) == 0)
        return try change(.moved(from: path(from), to: path(to)), at: to)
    }

    func undo(_ changes: [FileChange]) -> [String?] {
        var undoing = Undoing()
        return changes.reversed().map { undoing.undo($0, of: event) }
    }

    @Test func `a moved file is moved back, after the file that took its place`() throws {
        try folder.write("out/a", "old", mode: 0o644)
        let changes = [try move("out/a", "out/a (1)"), try move("in/a", "out/a")]
        var dry = Undoing(isDry: true)
        #expect(changes.reversed().map { dry.undo($0, of: event) } == [nil, nil])
        #expect(undo(changes) == [nil, nil])
        #expect(folder.text(of: "in/a") == "text" && folder.text(of: "out/a") == "old")
        #expect(
            undo(changes).allSatisfy {
                $0?.hasSuffix("no longer exists") == true || $0?.contains("another") == true
            })
    }

    @Test func `a file that was changed since is kept, with the reason`() throws {
        let moved = try move("in/a", "out/a")
        try folder.write("in/a", "new", mode: 0o644)
        #expect(undo([moved]) == ["'\(path("in/a"))' exists again"])
        try #require(unlink(path("in/a").description) == 0)
        try folder.write("out/b", "text", mode: 0o644)
        try #require(rename(path("out/b").description, path("out/a").description) == 0)
        #expect(undo([moved]) == ["'\(path("out/a"))' is now another file"])
        try #require(unlink(path("out/a").description) == 0)
        #expect(undo([moved]) == ["'\(path("out/a"))' no longer exists"])
        try folder.write("out/c", "text", mode: 0o644)
        let other = try change(.moved(from: path("in/c"), to: path("out/c")), at: "out/c")
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path("out/c").description))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data("more".utf8))
        try handle.close()
        #expect(undo([other]) == ["'\(path("out/c"))' has changed since"])
        #expect(folder.text(of: "out/c") == "textmore" && Self.look(path("in/c")) == nil)
    }

    @Test func `a copy is removed only while its source is unchanged`() throws {
        func copy() throws -> FileChange {
            try folder.write("out/a", "text", mode: 0o644)
            return try change(.made(path("out/a"), source: path("in/a")), at: "out/a")
        }
        #expect(undo([try copy()]) == [nil])
        #expect(Self.look(path("out/a")) == nil && folder.text(of: "in/a") == "text")
        let second = try copy()
        try #require(unlink(path("in/a").description) == 0)
        #expect(undo([second]).first??.contains("may be the only copy") == true)
        #expect(folder.text(of: "out/a") == "text")
    }

    @Test func `links are removed whatever the state of their source`() throws {
        try #require(symlink("../in/a", path("out/s").description) == 0)
        let symbolic = try change(.made(path("out/s"), source: path("in/a")), at: "out/s")
        try #require(link(path("in/a").description, path("out/h").description) == 0)
        let hard = try change(.made(path("out/h"), source: path("in/a")), at: "out/h")
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path("out/h").description))
        try handle.write(contentsOf: Data("other text".utf8))
        try handle.close()
        #expect(undo([symbolic, hard]) == [nil, nil])
        #expect(folder.text(of: "in/a") == "other text")
        #expect(Self.look(path("out/s")) == nil && Self.look(path("out/h")) == nil)
    }

    @Test func `a trashed file is restored, and a created directory is removed if it is empty`() throws {
        for name in ["T/files", "T/info", "out/new", "out/kept"] { try folder.folder(name) }
        try folder.write("T/info/a.trashinfo", "", mode: 0o644)
        let folders = [
            try change(.madeFolder(path("out/new")), at: "out/new"),
            try change(.madeFolder(path("out/kept")), at: "out/kept"),
        ]
        try folder.write("out/kept/x", "x", mode: 0o644)
        try #require(rename(path("in/a").description, path("T/files/a").description) == 0)
        let trashed = try change(
            .trashed(from: path("in/a"), to: path("T/files/a"), info: path("T/info/a.trashinfo")), at: "T/files/a")
        #expect(undo(folders + [trashed]) == [nil, nil, nil])
        #expect(folder.text(of: "in/a") == "text" && Self.look(path("T/info/a.trashinfo")) == nil)
        #expect(Self.look(path("out/new")) == nil && folder.text(of: "out/kept/x") == "x")
    }

    @Test func `an overwritten file cannot be restored, and no link below the root is followed`() throws {
        let overwritten = try change(.overwritten(path("in/a")), at: "in/a")
        #expect(undo([overwritten]).first??.contains("was replaced and can't be restored") == true)
        try folder.write("in/sub/b", "b", mode: 0o644)
        let moved = try move("in/sub/b", "out/b")
        try folder.folder("elsewhere")
        try #require(rmdir(path("in/sub").description) == 0)
        #expect(undo([moved]) == ["the directory '\(path("in/sub"))' no longer exists"])
        try #require(symlink("../elsewhere", path("in/sub").description) == 0)
        #expect(undo([moved]) == ["there is a symbolic link in the path to '\(path("in/sub"))'"])
        #expect(folder.text(of: "out/b") == "b" && Self.look(path("elsewhere/b")) == nil)
    }
}
