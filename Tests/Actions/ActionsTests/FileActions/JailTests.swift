import ActionAPI
import CAlightLinux
import FileActions
import Glibc
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// No action writes or removes anything outside its own directories.
struct JailTests {
    static func allow(_ directories: PathBytes...) -> [String: Parameter] {
        ["allow": .array(directories.map { .text($0.bytes) })]
    }

    /// Runs a handler for `in/a.txt` of the tree, with a rule that watches `in`.
    static func run(
        _ handler: any Handler, _ tree: PathBytes, to template: [Template.Part], allow: [String: Parameter] = [:]
    ) -> Outcome {
        var run = BuiltInRun(handler)
        run.directory = tree
        run.root = tree.appending("in")
        run.further = allow
        return run(tree.appending("in/a.txt"), templates: ["to": Template(parts: template)])
    }

    @Test(arguments: BuiltInLocationTests.kinds)
    func `a placeholder cannot lead out of the literal prefix`(_ kind: BuiltInLocationTests.Kind) throws {
        try withTempTree { tree in
            let root = tree.root
            TestFile.write(tree.path("in/a.txt"), "new")
            TestFile.makeDirectory(tree.path("out"))
            let outside: [(String, [Template.Part])] = [
                ("..", [.literal(Array("\(root)/out/".utf8)), .placeholder(.event), .literal(Array("/../../x".utf8))]),
                ("an absolute value", [.placeholder(.from), .literal(Array("\(root)/x".utf8))]),
                ("a path of its own", [.placeholder(.root), .literal(Array("/../x".utf8))]),
            ]
            for (name, template) in outside {
                let outcome = Self.run(kind.handler, root, to: template)
                #expect(outcome.result == .failed, "\(name): \(outcome.message)")
                #expect(outcome.code == "outside", "\(name): \(outcome.message)")
                #expect(outcome.message.contains("add it to 'allow'"))
                #expect(listing(root) == ["in/a.txt: new", "out/"])
            }
            // A directory that 'allow' names is allowed, even if it is elsewhere.
            let last = try #require(outside.last)
            let allowed = Self.run(kind.handler, root, to: last.1, allow: Self.allow(root))
            #expect(allowed.result == .succeeded, "\(allowed.message)")
            #expect(TestFile.exists(root.appending("x")))
        }
    }

    @Test(arguments: BuiltInLocationTests.kinds, ["absolute", "relative"])
    func `a link below a root does not lead out of it`(_ kind: BuiltInLocationTests.Kind, how: String) {
        withTempTree { tree in
            let root = tree.root
            TestFile.write(tree.path("in/a.txt"), "new")
            TestFile.makeDirectory(tree.path("elsewhere/deep"))
            TestFile.makeDirectory(tree.path("out"))
            let target = how == "absolute" ? tree.path("elsewhere") : "../elsewhere"
            _ = target.withCString { to in tree.path("out/link").withCString { symlink(to, $0) } }
            for location in ["link/", "link/deep/", "link/new/"] {
                let parts: [Template.Part] = [
                    .literal(Array("\(root)/out/".utf8)), .placeholder(.group(1)), .literal(Array(location.utf8)),
                ]
                let outcome = Self.run(kind.handler, root, to: parts)
                #expect(outcome.result == .failed, "\(outcome.message)")
                #expect(outcome.code == "outside")
                #expect(outcome.message.contains("symbolic link"), "\(outcome.message)")
            }
            #expect(listing(tree.path("elsewhere")) == ["deep/"])
            #expect(listing(tree.path("in")) == ["a.txt: new"])
        }
    }

    /// Others may write to the watched directory, so the author of the rule does not vouch for its links.
    @Test func `a destination inside the watched directory follows no link out of it`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a.txt"), "new")
            TestFile.makeDirectory(tree.path("elsewhere"))
            _ = tree.path("in/done").withCString { symlink("../elsewhere", $0) }
            let outcome = Self.run(TransferHandler.move(), tree.root, to: [.literal(Array("in/done/".utf8))])
            #expect(outcome.code == "outside", "\(outcome.message)")
            #expect(listing(tree.path("elsewhere")).isEmpty)
        }
    }

    @Test func `a link to the literal prefix is followed, and so is a link that stays below it`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a.txt"), "new")
            TestFile.makeDirectory(tree.path("big/real"))
            _ = tree.path("out").withCString { symlink("big", $0) }
            _ = tree.path("big/link").withCString { symlink("real", $0) }
            let parts: [Template.Part] = [
                .literal(Array("out/".utf8)), .placeholder(.group(1)), .literal(Array("link/".utf8)),
            ]
            let outcome = Self.run(TransferHandler.copy(), tree.root, to: parts)
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            #expect(listing(tree.path("big/real")) == ["a.txt: new"])
        }
    }

    @Test func `a directory on the path that was replaced by a link is not entered`() {
        withTempTree { tree in
            TestFile.write(tree.path("elsewhere/a.txt"), "precious")
            TestFile.makeDirectory(tree.path("in"))
            _ = tree.path("in/sub").withCString { symlink("../elsewhere", $0) }
            let handlers: [any Handler] = [
                TransferHandler.move(), TransferHandler.copy(), DeleteHandler(), TransferHandler.rename(),
                TouchHandler(), SetPermissionsHandler(),
                LinkHandler(), TrashHandler(trash: Trash(home: tree.path("trash"))),
            ]
            for handler in handlers {
                var run = BuiltInRun(handler)
                run.root = tree.path("in")
                let outcome = run(
                    tree.path("in/sub/a.txt"),
                    ["to": tree.path("out/"), "name": "b", "mode": "0777", "time": "@1"])
                #expect(outcome.result == .notReady, "\(handler.summary.reference.name): \(outcome.message)")
                #expect(listing(tree.path("elsewhere")) == ["a.txt: precious"])
            }
        }
    }

    @Test func `a file other than the one that settled is not touched`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a"), "settled")
            var run = BuiltInRun(TransferHandler.move())
            run.snapshot = try metadata(tree.path("in/a"))
            run.expectsSettled = true
            TestFile.write(tree.path("in/b"), "another")
            _ = tree.path("in/b").withCString { from in tree.path("in/a").withCString { rename(from, $0) } }
            let handlers: [any Handler] = [
                TransferHandler.move(), TransferHandler.copy(), DeleteHandler(), TransferHandler.rename(),
                TouchHandler(), SetPermissionsHandler(),
                LinkHandler(), TrashHandler(trash: Trash(home: tree.path("trash"))),
            ]
            for handler in handlers {
                run.handler = handler
                let outcome = run(tree.path("in/a"), ["to": tree.path("out/"), "name": "c", "mode": "0777"])
                #expect(outcome.result == .notReady && outcome.code == "changed", "\(outcome.message)")
                #expect(listing(tree.path("in")) == ["a: another"])
            }
        }
    }

    @Test func `opening by names follows no links and no dots`() {
        withTempTree { tree in
            TestFile.write(tree.path("a/b/c"), "x")
            _ = tree.path("a/link").withCString { symlink("b", $0) }
            let root = tree.root.withCString { cal_open_root($0) }
            defer { close(root) }
            func open(_ path: String, _ what: cal_opening = CAL_OPEN_DIRECTORY) -> Int32 {
                let opened = cal_open_beneath_by_names(root, path, what, 0)
                if opened >= 0 { close(opened) }
                return min(opened, 0)
            }
            #expect(open("a/b") == 0 && open("a//b/") == 0 && open(".") == 0 && open("") == 0)
            #expect(open("a/b/c", CAL_OPEN_READING) == 0)
            #expect(open("a/link") == -ELOOP && open("a/link/c", CAL_OPEN_READING) == -ELOOP)
            #expect(open("a/../a") == -EXDEV && open("..") == -EXDEV)
            #expect(open("a/x") == -ENOENT && open("a/b/c") == -ENOTDIR)
            #expect(open(String(repeating: "n", count: 300)) == -ENAMETOOLONG)
        }
    }

    // MARK: - Attacks

    @Test(.timeLimit(.minutes(10)), arguments: BuiltInLocationTests.kinds)
    func `directories swapped for links during the work lead nowhere`(_ kind: BuiltInLocationTests.Kind) {
        withTempTree { tree in
            let count = 300
            let names = (0..<count).map { "f\($0)" }
            for name in names {
                TestFile.write(tree.path("in/sub/\(name)"), "new \(name)")
                TestFile.write(tree.path("outside/\(name)"), "precious")
            }
            TestFile.makeDirectory(tree.path("out/x"))
            let before = listing(tree.path("outside"))
            let child = RunningProgram.swapping(
                [tree.path("in/sub"), tree.path("out/x")], for: tree.path("outside"), in: tree.root)
            var run = BuiltInRun(kind.handler)
            run.root = tree.path("in")
            run.further = Self.allow(tree.path("out"))
            var endings: [String: Int] = [:]
            for name in names {
                for _ in 0..<20 {
                    let outcome = run(tree.path("in/sub/\(name)"), ["to": tree.path("out/x/y/")])
                    endings[outcome.code ?? outcome.result.rawValue, default: 0] += 1
                    if outcome.result == .succeeded { break }
                }
            }
            // On a busy machine the other process may not have run at all yet.
            let hasMet = Deadline.wait {
                if endings["changed", default: 0] + endings["outside", default: 0] > 0 { return true }
                let outcome = run(tree.path("in/sub/f0"), ["to": tree.path("out/x/y/"), "on_conflict": "overwrite"])
                endings[outcome.code ?? outcome.result.rawValue, default: 0] += 1
                return false
            }
            #expect(hasMet, "\(endings)")
            child.signal(SIGKILL)
            _ = child.wait()
            #expect(listing(tree.path("outside")) == before, "\(endings)")
            #expect(child.error == "")
            #expect(endings["succeeded", default: 0] > 0, "\(endings)")
            // Each file is complete, in one place or the other, and there is nothing else.
            let all = listing(tree.path("in")) + listing(tree.path("out"))
            for name in names {
                let found = all.filter { $0.hasSuffix("/\(name): new \(name)") }
                #expect(found.count >= 1, "\(name) \(endings)")
                if kind.takes { #expect(found.count == 1, "\(name) \(found)") }
            }
            #expect(!all.contains { $0.contains("alight-tmp") || $0.contains("precious") })
        }
    }
}
