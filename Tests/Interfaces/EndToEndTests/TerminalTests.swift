import FileEvents
import Glibc
import System
import TestKit
import Testing

/// SIGHUP: a request to reload, or the end of the terminal.
struct TerminalTests {
    private static func rules(_ names: [String]) -> String {
        "rules:\n"
            + names.map { "  - { name: \($0), path: in/**, settle: 60ms, action: { use: log } }\n" }.joined()
    }

    private static func text(_ path: PathBytes) -> String { String(decoding: TestFile.read(path) ?? [], as: UTF8.self) }

    /// The program, run from an interactive shell in a terminal of its own.
    private final class Session {
        let shell: RunningProgram
        let program: pid_t
        private let folder: PathBytes
        private let master: Int32

        /// Starts them.
        ///
        /// - Parameters:
        ///   - folder: Where the rules are.
        ///   - prefix: Words before the program.
        ///   - suffix: Words after it.
        /// - Throws: When there is no terminal, or the program doesn't start.
        init(in folder: PathBytes, prefix: String, suffix: String) throws {
            self.folder = folder
            TestFile.write(folder.appending("rules.yaml"), TerminalTests.rules(["first"]))
            TestFile.makeFolder(folder.appending("in"))
            master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            // unlockpt(3) and ptsname(3), which Swift does not see.
            var isLocked: Int32 = 0
            try #require(ioctl(master, 0x4004_5431, &isLocked) == 0)
            var number: UInt32 = 0
            try #require(ioctl(master, 0x8004_5430, &number) == 0)
            let terminal = "/dev/pts/\(number)"
            let bash = "exec setsid --ctty bash --norc --noprofile --noediting -i <\(terminal) >\(terminal) 2>&1"
            shell = RunningProgram("/bin/sh", ["-c", bash], in: folder, output: folder.appending("shell"))
            TestFile.write(
                folder.appending("start"),
                "echo $$ >pid; exec '\(Places.alight)' run rules.yaml --no-auto-reload >run.out 2>run.err")
            let line = Array("\(prefix) sh start \(suffix)\n".utf8)
            try #require(write(master, line, line.count) == line.count)
            let path = folder.appending("run.err")
            try #require(Deadline.wait { TerminalTests.text(path).contains("ready: watching") })
            program = try #require(pid_t(TerminalTests.text(folder.appending("pid")).dropLast()))
        }

        deinit { if isRunning { kill(program, SIGKILL) } }

        /// A process that has ended and isn't reaped yet has no command line any more.
        var isRunning: Bool { !(TestFile.read(PathBytes("/proc/\(program)/cmdline")) ?? []).isEmpty }

        /// The socket is removed by a program that stops, and left by one that is killed.
        var hasSocket: Bool { TestFile.exists(folder.appending(".run/control.sock")) }

        /// Closes the window: the shell ends by that.
        func closeTerminal() {
            close(master)
            #expect(shell.wait() != nil)
        }

        /// Has the program read other rules; whether it does.
        func reloads(_ names: [String]) -> Bool {
            TestFile.write(folder.appending("rules.yaml"), TerminalTests.rules(names))
            kill(program, SIGHUP)
            let path = folder.appending("run.err")
            let said = "reloaded: watching 1 directory for \(names.count) rules"
            return Deadline.wait { TerminalTests.text(path).contains(said) }
        }
    }

    @Test(arguments: ["", "</dev/null &"])
    func `SIGHUP reloads, and stops the program when its terminal is closed`(suffix: String) throws {
        try withTempTree { tree in
            let session = try Session(in: tree.root, prefix: "", suffix: suffix)
            #expect(session.reloads(["first", "second"]))
            #expect(session.isRunning && session.hasSocket)
            session.closeTerminal()
            #expect(Deadline.wait { !session.isRunning })
            #expect(!session.hasSocket)
        }
    }

    @Test(arguments: ["nohup", "setsid"])
    func `under nohup or setsid SIGHUP reloads, also after the terminal was closed`(prefix: String) throws {
        try withTempTree { tree in
            let session = try Session(in: tree.root, prefix: prefix, suffix: "</dev/null &")
            #expect(session.reloads(["first", "second"]))
            session.closeTerminal()
            #expect(session.reloads(["first", "second", "third"]))
            kill(session.program, SIGTERM)
            #expect(Deadline.wait { !session.isRunning })
            #expect(!session.hasSocket)
        }
    }
}
