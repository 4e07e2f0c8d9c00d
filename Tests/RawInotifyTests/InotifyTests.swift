import FileEvents
import Foundation
import Glibc
import RawInotify
import TestKit
import Testing

@Suite struct InotifyTests {
    private static func words(_ events: [InotifyEvent], _ name: PathBytes) -> [InotifyMask] {
        events.filter { $0.name == name }.map(\.mask)
    }

    @Test func `what the kernel tells comes unchanged, with names as bytes`() throws {
        try withTempTree { tree in
            let inotify = try Inotify()
            let watch = try inotify.add(path: tree.root, mask: .allEvents)
            let name = PathBytes([0x63, 0xE9, 0x0A])
            TestFile.write(tree.root.appending(name.bytes), "x")
            TestFile.makeFolder(tree.path("sub"))
            let events = try inotify.read()
            #expect(Self.words(events, name) == [.create, .open, .modify, .closeWrite])
            #expect(Self.words(events, "sub") == [[.create, .isDirectory]])
            #expect(events.allSatisfy { $0.watch == watch && $0.cookie == 0 && !$0.isOverflow })
        }
    }

    @Test func `the two events of a rename have one cookie`() throws {
        try withTempTree { tree in
            let inotify = try Inotify()
            for folder in ["a", "b"] { TestFile.makeFolder(tree.path(folder)) }
            let from = try inotify.add(path: tree.path("a"), mask: .move)
            let to = try inotify.add(path: tree.path("b"), mask: .move)
            for name in ["1", "2"] {
                TestFile.write(tree.path("a/\(name)"), "x")
                #expect(rename("\(tree.root)/a/\(name)", "\(tree.root)/b/new\(name)") == 0)
            }
            let events = try inotify.read()
            #expect(events.map(\.mask) == [.movedFrom, .movedTo, .movedFrom, .movedTo])
            #expect(events.map(\.watch) == [from, to, from, to])
            #expect(events.map(\.name) == ["1", "new1", "2", "new2"])
            let cookies = events.map(\.cookie)
            try #require(cookies.count == 4)
            #expect(cookies[0] == cookies[1] && cookies[2] == cookies[3] && cookies[0] != cookies[2])
            #expect(!cookies.contains(0))
        }
    }

    @Test func `a watch that is removed says so once, and is no more`() throws {
        try withTempTree { tree in
            let inotify = try Inotify()
            let watch = try inotify.add(path: tree.root, mask: .create)
            try inotify.remove(watch)
            TestFile.write(tree.path("file"), "x")
            #expect(try inotify.read() == [InotifyEvent(watch: watch, mask: .ignored)])
            #expect(throws: InotifyError.unknownWatch(watch)) { try inotify.remove(watch) }
            #expect(try inotify.read(within: .zero).isEmpty)
        }
    }

    @Test func `a path that can't be watched is told with the way out`() throws {
        try withTempTree { tree in
            let inotify = try Inotify()
            let missing = tree.path("missing")
            let error = #expect(throws: InotifyError.self) { try inotify.add(path: missing, mask: .create) }
            #expect(error == .refused(missing, errno: ENOENT))
            #expect(error?.description == "cannot watch '\(missing)': No such file or directory")
            #expect(error?.help.contains("watch the folder above it") == true)
            let file = tree.path("file")
            TestFile.write(file, "x")
            #expect(throws: InotifyError.refused(file, errno: ENOTDIR)) {
                try inotify.add(path: file, mask: [.modify, .onlyDirectory])
            }
            #expect(throws: InotifyError.refused(file, errno: EINVAL)) { try inotify.add(path: file, mask: []) }
            let watch = try inotify.add(path: file, mask: .modify)
            #expect(throws: InotifyError.refused(file, errno: EEXIST)) {
                try inotify.add(path: file, mask: [.attrib, .maskCreate])
            }
            #expect(try inotify.add(path: file, mask: [.attrib, .maskAdd]) == watch)
        }
    }

    private static let hasUserNamespaces = withTempTree { tree in
        RunningProgram("/usr/bin/unshare", ["-Ur", "true"], in: tree.root, output: tree.path("out")).wait() == 0
    }

    @Test(.enabled(if: hasUserNamespaces, "user namespaces are needed to lower the limits"))
    func `a limit that is reached is told with its sysctl`() {
        withTempTree { tree in
            let root = tree.root
            func run(_ setting: String) -> RunningProgram {
                let program = RunningProgram(
                    "/usr/bin/unshare",
                    [
                        "-Ur", "/bin/sh", "-c", "echo \(setting) && exec \"$0\" \"$@\"",
                        "\(Places.products.appending("watch-raw"))", "\(root)", "/", "/usr",
                    ], in: root, output: root.appending("out"))
                _ = program.wait()
                return program
            }
            let watches = run("2 >/proc/sys/user/max_inotify_watches")
            #expect(watches.exitStatus() == 1)
            #expect(
                watches.lines == [
                    "watching \(root)", "watching /",
                    "cannot watch '/usr': the limit of 2 inotify watches is reached (user.max_inotify_watches)",
                    "raise it: sysctl user.max_inotify_watches=4; or remove watches, of other programs too",
                ])
            let instances = run("0 >/proc/sys/user/max_inotify_instances")
            #expect(instances.exitStatus() == 1)
            #expect(
                instances.lines.first
                    == "cannot open inotify: the limit of 0 instances is reached (user.max_inotify_instances)")
        }
    }

    @Test func `a read that waits ends with the time, with an event, and with the instance`() async throws {
        try await Blocking.run {
            try withTempTree { tree in
                let inotify = try Inotify()
                try inotify.add(path: tree.root, mask: .create)
                #expect(try inotify.read(within: .milliseconds(20)).isEmpty)
                TestFile.write(tree.path("file"), "x")
                #expect(try inotify.read(within: .seconds(20)).map(\.name) == ["file"])
                // A task might not get one of Swift's few threads for long, while other tests have them.
                Thread.detachNewThread { inotify.close() }
                #expect(throws: InotifyError.closed) { try inotify.read(within: .seconds(60)) }
                #expect(throws: InotifyError.closed) { try inotify.add(path: "/", mask: .create) }
            }
        }
    }

    @Test func `a mask is shown by its words`() {
        #expect("\([.create, .isDirectory] as InotifyMask)" == "[create, isDirectory]")
        #expect("\(InotifyMask(rawValue: 0x0080_0008))" == "[closeWrite, 0x800000]")
        #expect(InotifyMask.allEvents.rawValue == 0xFFF)
        #expect(InotifyMask.oneShot.rawValue == 0x8000_0000)
    }
}
