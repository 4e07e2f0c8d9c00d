import ActionAPI
import Glibc
import Rules
import System
import Testing
import TestKit

/// Checks for users who could change what root is about to run.
@Suite(.enabled(if: geteuid() == 0, "only root can give files away"))
struct OwnershipCheckTests {
    private static func own(_ path: PathBytes, _ user: uid_t) {
        #expect(path.withCString { lchown($0, user, user) } == 0)
    }

    private static func mode(_ path: PathBytes, _ mode: mode_t) { #expect(path.withCString { chmod($0, mode) } == 0) }

    private static func link(_ path: PathBytes, to target: String) {
        #expect(path.withCString { symlink(target, $0) } == 0)
    }

    private static func problem(running words: [String]) -> Problem? {
        OwnershipCheck.problem(running: PathBytes(words[0]), words.dropFirst().map { Array($0.utf8) })
    }

    @Test func `a file that only root can change is accepted, also in a directory like tmp`() {
        withTempTree { tree in
            TestFile.write(tree.path("sticky/rules.yaml"), "x")
            Self.mode(tree.path("sticky"), 0o1777)
            #expect(OwnershipCheck.problem(with: tree.path("sticky/rules.yaml")) == nil)
            #expect(OwnershipCheck.problem(with: tree.path("missing")) == nil)
        }
    }

    @Test func `a file of another user is refused, also in a directory like tmp`() {
        withTempTree { tree in
            let file = tree.path("sticky/rules.yaml")
            TestFile.write(file, "x")
            Self.mode(tree.path("sticky"), 0o1777)
            Self.own(file, 4711)
            let problem = OwnershipCheck.problem(with: file)
            #expect(problem?.message == "'\(file)' belongs to user 4711, who could change what root runs")
            #expect(problem?.help == "run: chown root:root '\(file)'")
        }
    }

    @Test(arguments: [0o666, 0o646, 0o662] as [mode_t])
    func `a world-writable file is refused`(mode: mode_t) {
        withTempTree { tree in
            let file = tree.path("rules.yaml")
            TestFile.write(file, "x")
            Self.mode(file, mode)
            #expect(OwnershipCheck.problem(with: file)?.help == "run: chmod go-w '\(file)'")
        }
    }

    @Test func `a group-writable file is refused, except for root's own group`() {
        withTempTree { tree in
            let file = tree.path("rules.yaml")
            TestFile.write(file, "x")
            Self.mode(file, 0o664)
            #expect(OwnershipCheck.problem(with: file) == nil)
            #expect(file.withCString { chown($0, 0, 4711) } == 0)
            #expect(OwnershipCheck.problem(with: file)?.message.contains("(mode 0664)") == true)
        }
    }

    @Test func `the directories above a file are checked too`() {
        withTempTree { tree in
            TestFile.write(tree.path("open/deep/rules.yaml"), "x")
            Self.mode(tree.path("open"), 0o777)
            let problem = OwnershipCheck.problem(with: tree.path("open/deep/rules.yaml"))
            #expect(problem?.help == "run: chmod go-w '\(tree.path("open"))'")
        }
    }

    @Test func `the whole path of a link's target is checked`() {
        withTempTree { tree in
            TestFile.write(tree.path("open/rules.yaml"), "x")
            TestFile.makeDirectory(tree.path("links"))
            Self.mode(tree.path("open"), 0o777)
            Self.link(tree.path("links/second"), to: "../open")
            Self.link(tree.path("links/first"), to: "second/rules.yaml")
            let problem = OwnershipCheck.problem(with: tree.path("links/first"))
            #expect(problem?.help == "run: chmod go-w '\(tree.path("open"))'")
        }
    }

    @Test func `a link of another user is refused, whatever its target`() {
        withTempTree { tree in
            TestFile.write(tree.path("rules.yaml"), "x")
            let link = tree.path("link.yaml")
            Self.link(link, to: "rules.yaml")
            #expect(OwnershipCheck.problem(with: link) == nil)
            Self.own(link, 4711)
            #expect(OwnershipCheck.problem(with: link)?.help == "run: chown -h root:root '\(link)'")
        }
    }

    @Test func `a cycle of links is resolved without an endless loop`() {
        withTempTree { tree in
            Self.link(tree.path("a"), to: "b")
            Self.link(tree.path("b"), to: "a")
            #expect(OwnershipCheck.problem(with: tree.path("a")) == nil)
        }
    }

    @Test(arguments: [
        ["OPEN/tool"], ["SCRIPT"], ["ENV"], ["SPLIT"], ["NESTED"], ["/usr/bin/env", "A=b", "-u", "C", "OPEN/tool"],
        ["/usr/bin/python3", "-u", "OPEN/main"], ["/bin/sh", "OPEN/main"], ["/usr/bin/env", "perl", "OPEN/main"],
        ["/bin/sh", "-c", "OPEN/tool"], ["/bin/sh", "-ec", "cd /tmp && A=b 'OPEN/tool' x"],
        ["/bin/sh", "-c", ". OPEN/main"], ["/bin/sh", "-c", "if ! OPEN/tool; then true; fi"],
        ["/bin/sh", "-c", "echo $(python3 OPEN/main)"], ["/bin/sh", "-c", "bash -c OPEN/tool"],
    ])
    func `every file that decides what a command does is checked`(command: [String]) {
        withTempTree { tree in
            let open = tree.path("open")
            let lines = [
                "open/tool": "#!/bin/true\n", "open/main": "", "script": "#! \(open)/tool -x \n",
                "env": "#!/usr/bin/env \(open)/tool\n", "split": "#!/usr/bin/env -S A=b \(open)/tool -x\n",
                "nested": "#!\(tree.path("script"))",
            ]
            for (name, line) in lines { TestFile.write(tree.path(name), Array(line.utf8), mode: 0o755) }
            let words = command.map { word in
                ["SCRIPT", "ENV", "SPLIT", "NESTED"].contains(word)
                    ? "\(tree.path(word.lowercased()))" : word.replacing("OPEN", with: "\(open)")
            }
            #expect(Self.problem(running: words) == nil)
            Self.own(open, 4711)
            #expect(Self.problem(running: words)?.help == "run: chown root:root '\(open)'")
        }
    }

    @Test(arguments: [
        ["/usr/bin/env", "tool"], ["/usr/bin/env", "PATH=OPEN", "tool"], ["/bin/sh", "-c", "tool"], ["SCRIPT"],
        ["/bin/sh", "-c", "exec env -u A tool"],
    ])
    func `a command without a path is searched for where the program searches`(command: [String]) {
        withTempTree { tree in
            let open = tree.path("open")
            TestFile.write(open.appending("tool"), Array("#!/bin/true\n".utf8), mode: 0o755)
            TestFile.write(tree.path("script"), Array("#!/usr/bin/env tool\n".utf8), mode: 0o755)
            Self.own(open, 4711)
            let words = command.map {
                $0.replacing("OPEN", with: "\(open)").replacing("SCRIPT", with: "\(tree.path("script"))")
            }
            let arguments = words.dropFirst().map { Array($0.utf8) }
            let setsPath = command.contains { $0.hasPrefix("PATH=") }
            #expect((Self.problem(running: words) != nil) == setsPath)
            let path = Array("relative:\(open):/usr/bin:/bin".utf8)
            let problem = OwnershipCheck.problem(running: PathBytes(words[0]), arguments, searchPath: path)
            #expect(problem?.help == "run: chown root:root '\(open)'")
        }
    }

    @Test func `a directory that is searched before that of the program is checked too`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("open"))
            Self.own(tree.path("open"), 4711)
            func problem(_ path: String) -> Problem? {
                OwnershipCheck.problem(
                    running: "/bin/sh", ["-c", "ls"].map { Array($0.utf8) }, searchPath: Array(path.utf8))
            }
            #expect(problem("\(tree.path("open")):/usr/bin:/bin")?.help?.contains("\(tree.path("open"))") == true)
            #expect(problem("/usr/bin:/bin:\(tree.path("open"))") == nil)
        }
    }

    @Test(arguments: [
        ["/bin/cp", "OPEN/tool", "/srv"], ["/usr/bin/python3", "-c", "OPEN/tool"], ["/bin/sh", "-c", "cat OPEN/tool"],
        ["/bin/sh", "-c", "runuser -u bob -- OPEN/tool"], ["/usr/bin/env"],
        ["/usr/bin/python3", "main.py", "OPEN/tool"],
    ])
    func `files that a command only reads or passes to another user are not checked`(command: [String]) {
        withTempTree { tree in
            TestFile.write(tree.path("open/tool"), "")
            Self.own(tree.path("open"), 4711)
            let words = command.map { $0.replacing("OPEN", with: "\(tree.path("open"))") }
            #expect(Self.problem(running: words) == nil)
        }
    }

    @Test func `interpreters that name each other are resolved without an endless loop`() {
        withTempTree { tree in
            TestFile.write(tree.path("a"), "#!\(tree.path("b"))")
            TestFile.write(tree.path("b"), "#!\(tree.path("a"))")
            #expect(OwnershipCheck.problem(running: tree.path("a")) == nil)
        }
    }

    @Test func `an access list that grants rights is respected`() {
        withTempTree { tree in
            let file = tree.path("rules.yaml")
            TestFile.write(file, "x")
            Self.mode(file, 0o660)
            // Version 2: the owner, user 4711, the group, the mask, others.
            var list: [UInt8] = [2, 0, 0, 0]
            for (tag, rights, id) in [(1, 6, -1), (2, 6, 4711), (4, 4, -1), (16, 6, -1), (32, 0, -1)]
                as [(UInt8, UInt8, Int32)]
            {
                list += [tag, 0, rights, 0] + withUnsafeBytes(of: id.littleEndian) { Array($0) }
            }
            // Not every file system supports access lists.
            if TestFile.setAttribute(file, "system.posix_acl_access", list) {
                #expect(OwnershipCheck.problem(with: file)?.help == "run: chmod go-w '\(file)'")
            }
        }
    }
}
