import FileActions
import FileEvents
import Foundation
import Glibc
import Rules
import System
import Testing

/// Undoing changes on disk.
struct UndoingTests {
    let directory: TemporaryDirectory
    let event: FileEvent

    init() throws {
        directory = TemporaryDirectory()
        for name in ["in", "in/sub", "out"] { try directory.directory(name) }
        try directory.write("in/a", "text", mode: 0o644)
        var event = Stage.event(path: directory.path.appending("in/a"))
        event.root = directory.path.appending("in")
        event.snapshot = try #require(Self.inspect(directory.path.appending("in/a")))
        self.event = event
    }

    static func inspect(_ path: PathBytes) -> Snapshot? {
        if case .present(let snapshot) = KernelFileSystem().stat(path) { snapshot } else { nil }
    }

    func path(_ name: String) -> PathBytes { directory.path.appending(name) }

    func change(_ kind: FileChange.Kind, at name: String) throws -> FileChange {
        FileChange(kind, left: FileMark(try #require(Self.inspect(path(name)))))
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
        try directory.write("out/a", "old", mode: 0o644)
        let changes = [try move("out/a", "out/a (1)"), try move("in/a", "out/a")]
        var dry = Undoing(isDry: true)
        #expect(changes.reversed().map { dry.undo($0, of: event) } == [nil, nil])
        #expect(undo(changes) == [nil, nil])
        #expect(directory.text(of: "in/a") == "text" && directory.text(of: "out/a") == "old")
        #expect(
            undo(changes).allSatisfy {
                $0?.hasSuffix("no longer exists") == true || $0?.contains("another") == true
            })
    }

    @Test func `a file that was changed since is retained, with the reason`() throws {
        let moved = try move("in/a", "out/a")
        try directory.write("in/a", "new", mode: 0o644)
        #expect(undo([moved]) == ["'\(path("in/a"))' exists again"])
        try #require(unlink(path("in/a").description) == 0)
        try directory.write("out/b", "text", mode: 0o644)
        try #require(rename(path("out/b").description, path("out/a").description) == 0)
        #expect(undo([moved]) == ["'\(path("out/a"))' is now another file"])
        try #require(unlink(path("out/a").description) == 0)
        #expect(undo([moved]) == ["'\(path("out/a"))' no longer exists"])
        try directory.write("out/c", "text", mode: 0o644)
        let other = try change(.moved(from: path("in/c"), to: path("out/c")), at: "out/c")
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path("out/c").description))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data("more".utf8))
        try handle.close()
        #expect(undo([other]) == ["'\(path("out/c"))' has changed since"])
        #expect(directory.text(of: "out/c") == "textmore" && Self.inspect(path("in/c")) == nil)
    }

    @Test func `a copy is removed only while its source is unchanged`() throws {
        func copy() throws -> FileChange {
            try directory.write("out/a", "text", mode: 0o644)
            return try change(.made(path("out/a"), source: path("in/a")), at: "out/a")
        }
        #expect(undo([try copy()]) == [nil])
        #expect(Self.inspect(path("out/a")) == nil && directory.text(of: "in/a") == "text")
        let second = try copy()
        try #require(unlink(path("in/a").description) == 0)
        #expect(undo([second]).first??.contains("may be the only copy") == true)
        #expect(directory.text(of: "out/a") == "text")
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
        #expect(directory.text(of: "in/a") == "other text")
        #expect(Self.inspect(path("out/s")) == nil && Self.inspect(path("out/h")) == nil)
    }

    @Test func `a trashed file is restored, and a created directory is removed if it is empty`() throws {
        for name in ["T/files", "T/info", "out/new", "out/kept"] { try directory.directory(name) }
        try directory.write("T/info/a.trashinfo", "", mode: 0o644)
        let directories = [
            try change(.madeDirectory(path("out/new")), at: "out/new"),
            try change(.madeDirectory(path("out/kept")), at: "out/kept"),
        ]
        try directory.write("out/kept/x", "x", mode: 0o644)
        try #require(rename(path("in/a").description, path("T/files/a").description) == 0)
        let trashed = try change(
            .trashed(from: path("in/a"), to: path("T/files/a"), info: path("T/info/a.trashinfo")), at: "T/files/a")
        #expect(undo(directories + [trashed]) == [nil, nil, nil])
        #expect(directory.text(of: "in/a") == "text" && Self.inspect(path("T/info/a.trashinfo")) == nil)
        #expect(Self.inspect(path("out/new")) == nil && directory.text(of: "out/kept/x") == "x")
    }

    @Test func `an overwritten file cannot be restored, and no link below the root is followed`() throws {
        let overwritten = try change(.overwritten(path("in/a")), at: "in/a")
        #expect(undo([overwritten]).first??.contains("was replaced and can't be restored") == true)
        try directory.write("in/sub/b", "b", mode: 0o644)
        let moved = try move("in/sub/b", "out/b")
        try directory.directory("elsewhere")
        try #require(rmdir(path("in/sub").description) == 0)
        #expect(undo([moved]) == ["the directory '\(path("in/sub"))' no longer exists"])
        try #require(symlink("../elsewhere", path("in/sub").description) == 0)
        #expect(undo([moved]) == ["there is a symbolic link in the path to '\(path("in/sub"))'"])
        #expect(directory.text(of: "out/b") == "b" && Self.inspect(path("elsewhere/b")) == nil)
    }
}
