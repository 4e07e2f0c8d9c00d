import CTestKit
import FileEvents
import FileWatching
import Foundation
import Reconciling
import Synchronization
import TestKit
import Testing

private enum Overlay {
    /// Why overlayfs can't be mounted here; nil when it can.
    static let problem: String? = {
        let error = Mutex<Int32?>(nil)
        let thread = Thread {
            let result = withTempTree { tree in mount(tree.root, lower: []) { _ in () } }
            error.withLock { $0 = result }
        }
        thread.start()
        _ = Deadline.wait { error.withLock { $0 } != nil }
        let number = error.withLock { $0 } ?? ETIMEDOUT
        return number == 0 ? nil : "overlayfs can't be mounted here: errno \(number)"
    }()

    /// Calls the body with a directory on overlayfs, mounted for this thread alone, in whose lower layer the files are.
    ///
    /// - Returns: 0, or the errno of what failed.
    static func mount(_ base: PathBytes, lower: [String], _ body: (PathBytes) throws -> Void) rethrows -> Int32 {
        var error = ctk_unshare_mounts()
        if error == 0 { error = ctk_mount("tmpfs", base.description, "size=4m") }
        guard error == 0 else { return error }
        defer { ctk_unmount(base.description) }
        for name in ["lower", "upper", "work", "merged"] { TestFile.makeFolder(base.appending(name)) }
        for name in lower { TestFile.write(base.appending("lower").appending(name), "text") }
        let root = base.appending("merged")
        let layers = ["lower", "upper", "work"].map { "\($0)dir=\(base)/\($0)" }.joined(separator: ",")
        error = ctk_mount("overlay", root.description, layers)
        guard error == 0 else { return error }
        defer { ctk_unmount(root.description) }
        try body(root)
        return 0
    }
}

/// Files on overlayfs, whose first change copies them from the lower layer to the upper one.
@Suite(.enabled(if: Overlay.problem == nil, "\(Overlay.problem ?? "")"))
struct OverlayTests {
    private func onOverlay(
        _ names: [String], _ body: @escaping @Sendable (PathBytes) throws -> Void
    ) async throws {
        try await Blocking.run {
            try withTempTree { tree in
                let error = try Overlay.mount(tree.root, lower: names, body)
                #expect(error == 0)
            }
        }
    }

    private static func change(_ root: PathBytes) {
        let path = { (name: String) in root.appending(name).description }
        #expect(chmod(path("mode"), 0o600) == 0)
        #expect(utimes(path("times"), nil) == 0)
        TestFile.write(root.appending("content"), Array(" and more".utf8), appending: true)
        #expect(rename(path("name"), path("other")) == 0)
    }

    private static let names = ["content", "mode", "name", "times"]

    @Test func `S39 a file of a lower layer stays the same file when it is changed first`() async throws {
        try await onOverlay(Self.names) { root in
            var desk = try Desk(root)
            desk.list(Self.names)
            Self.change(root)
            desk.take([
                ("mode", .attributes), ("times", .attributes), ("content", [.written, .closed]),
                ("name", [.vanished, .moved]), ("other", [.appeared, .moved]),
            ])
            desk.wait()
            let events = desk.events().sorted { $0.path < $1.path }
            #expect(events.map(\.kind) == [.modified, .attributes, .moved, .attributes])
            #expect(events.map(\.changed) == [["extended"], ["mode"], [], ["mtime"]])
            #expect(events.map(\.isReplaced) == [false, false, false, false])
            #expect(events.map(\.before?.identity) == events.map(\.snapshot.identity))
            #expect(events[2].from == root.appending("name"))
        }
    }

    @Test func `S39 a file of a lower layer is known at the start, unless it was written to meanwhile`() async throws {
        try await onOverlay(Self.names) { root in
            let ledger = TestLedger()
            var first = try Desk(root, ledger: ledger)
            first.list(Self.names)
            Self.change(root)
            var desk = try Desk(root, beginning: .compared(since: nil), ledger: ledger, isReady: false)
            desk.list(["content", "mode", "other", "times"])
            desk.wait()
            let events = desk.events().sorted { $0.path < $1.path }
            #expect(events.map(\.kind) == [.modified, .attributes, .moved, .modified])
            #expect(events.map(\.isReplaced) == [true, false, false, true])
        }
    }

    @Test func `S40 a file of a lower layer that is deleted and made again is another file`() async throws {
        try await onOverlay(["a"]) { root in
            var desk = try Desk(root)
            desk.list(["a"])
            #expect(unlink(root.appending("a").description) == 0)
            TestFile.write(root.appending("a"), "text")
            desk.take([("a", [.vanished, .appeared, .written, .closed])])
            desk.wait()
            let events = desk.events()
            #expect(events.map(\.kind) == [.modified])
            #expect(events.map(\.isReplaced) == [true])
        }
    }
}
