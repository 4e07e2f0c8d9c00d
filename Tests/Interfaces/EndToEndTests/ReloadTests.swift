import Glibc
import System
import Testing
import TestKit

/// Rules that are replaced while the program runs.
struct ReloadTests {
    static func rules(_ names: [String], directory: String = "in") -> String {
        "rules:\n"
            + names.map { name in
                """
                  - name: \(name)
                    path: ../\(directory)/**
                    settle: 60ms
                    action: { use: log, with: { message: "${rule} ${name}" } }

                """
            }.joined()
    }

    private static func withProgram(
        _ arguments: [String] = [], _ body: (borrowing TemporaryTree, RunningProgram) -> Void
    ) {
        withTempTree { tree in
            for name in ["in", "in/deep", "other", "rules", "state"] { TestFile.makeDirectory(tree.path(name)) }
            TestFile.write(tree.path("rules/a.yaml"), rules(["first"]))
            let program = RunningProgram.alight(
                ["run", "rules", "--journal", "state/journal.db"] + arguments, in: tree.root)
            JournalFileTests.awaitReady(program)
            body(tree, program)
            JournalFileTests.stop(program)
        }
    }

    /// Waits until rules have been reloaded `count` times.
    private static func reloads(_ program: RunningProgram, _ count: Int) -> Bool {
        Deadline.wait { program.error.split(separator: "\n").count { $0.hasPrefix("reloaded: ") } >= count }
    }

    @Test func `a rules file that changes is loaded, and so is a new one`() {
        Self.withProgram { tree, program in
            TestFile.write(tree.path("rules/a.yaml"), Self.rules(["second"]))
            #expect(Self.reloads(program, 1), "\(program.error)")
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { program.output.contains("second a") })
            TestFile.write(tree.path("rules/b.yaml"), Self.rules(["third"], directory: "other"))
            #expect(Self.reloads(program, 2), "\(program.error)")
            #expect(program.error.contains("reloaded: watching 3 directories for 2 rules"), "\(program.error)")
            TestFile.write(tree.path("other/b"), "x")
            #expect(Deadline.wait { program.output.contains("third b") })
            #expect(!program.output.contains("first"))
        }
    }

    /// truncate(2) opens no file, so there is no close event.
    @Test func `a truncated rules file is loaded`() {
        Self.withProgram { tree, program in
            let file = tree.path("rules/a.yaml")
            TestFile.write(file, Self.rules(["first", "second"]))
            #expect(Self.reloads(program, 1), "\(program.error)")
            #expect(file.withCString { truncate($0, off_t(Self.rules(["first"]).utf8.count)) } == 0)
            #expect(Self.reloads(program, 2), "\(program.error)")
            #expect(program.error.contains("reloaded: watching 2 directories for 1 rule"), "\(program.error)")
        }
    }

    @Test func `while rules have errors the previous rules stay active, and the errors are reported`() {
        Self.withProgram { tree, program in
            TestFile.write(tree.path("rules/a.yaml"), Self.rules(["first"]) + "    setle: 1s\n")
            #expect(
                Deadline.wait { program.error.contains("the new rules contain errors") },
                "\(program.error)")
            #expect(program.error.contains("rules/a.yaml:6:5: error: unknown key 'setle'"), "\(program.error)")
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { program.output.contains("first a") })
            TestFile.write(tree.path("rules/a.yaml"), Self.rules(["mended"]))
            #expect(Self.reloads(program, 1), "\(program.error)")
            TestFile.write(tree.path("in/b"), "x")
            #expect(Deadline.wait { program.output.contains("mended b") })
        }
    }

    /// Runs `alight run LOCATION` with rules that shell commands exchange, and checks which rule is loaded.
    ///
    /// - Parameters:
    ///   - location: The rules file or directory.
    ///   - setUp: Creates the rules named `first`.
    ///   - changes: Each loads the rule that it is listed with, from the file of that name; or without a rule, none.
    private static func follow(_ location: String, _ setUp: String, _ changes: [(rule: String?, command: String)]) {
        withTempTree { tree in
            for name in ["in", "state"] { TestFile.makeDirectory(tree.path(name)) }
            for name in ["first"] + changes.compactMap(\.rule) {
                TestFile.write(tree.path(name), rules([name]).replacing("../in", with: "\(tree.root)/in"))
            }
            #expect(shell(setUp, tree.root) == 0)
            let program = RunningProgram.alight(["run", location, "--journal", "state/journal.db"], in: tree.root)
            JournalFileTests.awaitReady(program)
            for (rule, command) in changes {
                let before = program.error.count
                #expect(shell(command, tree.root) == 0)
                guard let rule else {
                    let message = "the new rules contain errors"
                    #expect(Deadline.wait { program.error.dropFirst(before).contains(message) }, "\(command)")
                    continue
                }
                // The first files may still be handled by the rules before.
                var number = 0
                let isLoaded: Void? = Deadline.poll {
                    number += 1
                    TestFile.write(tree.path("in/\(rule)\(number)"), "x")
                    return Deadline.wait(within: .seconds(1)) { program.output.contains("\(rule) \(rule)") } ? () : nil
                }
                #expect(isLoaded != nil, "\(command): \(program.error)")
            }
            JournalFileTests.stop(program)
        }
    }

    private static func shell(_ line: String, _ directory: PathBytes) -> Int32? {
        RunningProgram("/bin/sh", ["-ec", line], in: directory, output: directory.appending("sh")).wait()
    }

    /// Kubernetes replaces the link `..data`; the links in the directory that the user sees never change.
    @Test func `a ConfigMap with another version is loaded, as a directory and as a file`() {
        let setUp = """
            mkdir -p rules/..1 && cp first rules/..1/a.yaml && ln -s ..1 rules/..data && ln -s ..data/a.yaml rules/a.yaml
            """
        func update(_ rule: String, _ last: Int) -> (String?, String) {
            let next = last + 1
            return (
                rule,
                """
                mkdir rules/..\(next) && cp \(rule) rules/..\(next)/a.yaml && ln -s ..\(next) rules/..data_tmp &&
                mv -T rules/..data_tmp rules/..data && rm -r rules/..\(last)
                """
            )
        }
        for location in ["rules", "rules/a.yaml"] {
            Self.follow(location, setUp, [update("second", 1), update("third", 2), update("fourth", 3)])
        }
    }

    /// NixOS replaces a link above the directory; further links lead to a directory that is never changed.
    @Test func `rules behind a chain of links to directories are loaded when any link changes`() {
        Self.follow(
            "etc/alight/rules",
            """
            mkdir -p store/1/alight/rules store/2/alight/rules etc && cp first store/1/alight/rules/a.yaml
            cp second store/2/alight/rules/a.yaml && ln -s store/1 static && ln -s ../static/alight etc/alight
            """,
            [
                ("second", "ln -s store/2 next && mv -T next static"),
                ("third", "mkdir -p other/rules && cp third other/rules/b.yaml && ln -sfn ../other etc/alight"),
                ("fourth", "cp fourth new && mv new other/rules/b.yaml"),
            ])
    }

    /// GNU Stow links a file or its directory into a tree of files that are edited in place.
    @Test func `rules files that are links are loaded when a target is edited, replaced or comes back`() {
        Self.follow(
            "rules",
            """
            mkdir -p dot/real rules && cp first dot/real/a.yaml && ln -s real dot/files
            ln -s ../dot/files/a.yaml rules/a.yaml
            """,
            [
                ("second", "cat second > dot/real/a.yaml"),
                ("third", "cp third new && mv new dot/real/a.yaml"),
                (nil, "mv dot/real dot/away"),
                ("fourth", "mkdir dot/real && cp fourth dot/real/a.yaml"),
                ("fifth", "rm rules/a.yaml && cp fifth rules/a.yaml"),
                ("sixth", "ln -sf ../sixth rules/b.yaml && rm rules/a.yaml"),
            ])
    }

    @Test func `with --no-auto-reload rules are reloaded only on SIGHUP`() {
        Self.withProgram(["--no-auto-reload"]) { tree, program in
            TestFile.write(tree.path("rules/a.yaml"), Self.rules(["second"]))
            // The watcher of the rules would have detected the change by the time that three files have settled.
            for name in ["a", "b", "c"] {
                TestFile.write(tree.path("in/\(name)"), "x")
                #expect(Deadline.wait { program.output.contains("first \(name)") })
            }
            program.signal(SIGHUP)
            #expect(Self.reloads(program, 1), "\(program.error)")
            TestFile.write(tree.path("in/d"), "x")
            #expect(Deadline.wait { program.output.contains("second d") })
        }
    }

    /// Returns the inotify watches of a process: a number and the inode.
    private static func watches(of process: pid_t) -> Set<String> {
        let directory = PathBytes("/proc/\(process)/fdinfo")
        return TestFile.names(in: directory).reduce(into: []) { found, name in
            let text = TestFile.text(directory.appending(name)) ?? ""
            for line in text.split(separator: "\n") where line.hasPrefix("inotify ") {
                found.insert(line.split(separator: " ")[1...3].joined(separator: " "))
            }
        }
    }

    @Test func `a reload keeps shared watches, and files written meanwhile are reported once`() {
        Self.withProgram { tree, program in
            let before = Self.watches(of: program.pid)
            #expect(before.count >= 2)
            for number in 0..<1000 {
                if number % 10 == 0 {
                    let others = number % 20 == 0 ? [] : ["extra"]
                    TestFile.write(tree.path("rules/b.yaml"), Self.rules(["second"] + others, directory: "other"))
                    program.signal(SIGHUP)
                }
                TestFile.write(tree.path(number % 2 == 0 ? "in/\(number)" : "in/deep/\(number)"), "x")
            }
            #expect(Deadline.wait(within: .seconds(60)) { program.lines.count { $0.contains("first ") } >= 1000 })
            #expect(Self.reloads(program, 1), "\(program.error)")
            #expect(Self.watches(of: program.pid).isSuperset(of: before))
            let names = program.lines.compactMap { $0.split(separator: ":").last.map(String.init) }
                .filter { $0.contains("first ") }
            #expect(names.count == 1000)
            #expect(Set(names).count == 1000)
            #expect(program.exitStatus() == nil)
        }
    }

    @Test func `in JSON an error has its location`() {
        Self.withProgram(["--log-format", "json"]) { tree, program in
            TestFile.write(tree.path("rules/a.yaml"), "rules: 5\n")
            #expect(
                Deadline.wait { program.error.contains(#""column":"8""#) && program.error.contains(#""line":"1""#) },
                "\(program.error)")
            #expect(program.error.split(separator: "\n").allSatisfy { $0.hasPrefix("{") }, "\(program.error)")
        }
    }
}
