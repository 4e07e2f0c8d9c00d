import FileEvents
import Globbing
import Rules
import System
import Testing
import TestKit

/// Conditions on the process that wrote a file.
struct WriterConditionTests {
    private static func by(_ globs: String...) throws -> Condition {
        .by(try globs.map { Condition.Program(try Glob($0, options: Glob.Options(matchesHidden: true))) })
    }

    private static func input(_ writer: Writer) -> ConditionInput {
        var event = FileEvent.sample()
        event.writer = writer
        return ConditionInput(event)
    }

    private static func process(_ name: PathBytes?, _ executable: PathBytes?) -> ConditionInput {
        input(.process(WritingProcess(pid: 7, name: name, executable: executable, uid: 0)))
    }

    @Test(
        arguments: [
            ("cp", "cp", "/usr/bin/cp"), ("c*", "cp", nil), ("{mv,cp}", "cp", "/usr/bin/cp"),
            ("backup.sh", "backup.sh", "/usr/bin/bash"), ("bash", "backup.sh", "/usr/bin/bash"),
            ("cp", "cp", "/bin/busybox"), ("unattended-upgrades", "unattended-upgr", "/bin/unattended-upgrades"),
            ("/usr/bin/cp", "cp", "/usr/bin/cp"), ("/usr/*/cp", "cp", "/usr/bin/cp"), ("**/cp", nil, "/usr/bin/cp"),
        ] as [(String, PathBytes?, PathBytes?)])
    func `a program matches by process name, file name or path`(
        glob: String, name: PathBytes?, executable: PathBytes?
    ) throws {
        #expect(try Self.by("other", glob).answer(Self.process(name, executable)) == .holds)
    }

    @Test func `a mismatch names the program that wrote and the programs wanted`() throws {
        let found = "it was written by 'cp' (process 7, /usr/bin/cp)"
        let input = Self.process("cp", "/usr/bin/cp")
        #expect(try Self.by("rsync", "/bin/*").answer(input) == .fails("\(found), expected 'rsync' or '/bin/*'"))
        #expect(
            try Condition.not(Self.by("c*")).answer(input) == .fails("excluded by 'not': \(found) ('c*')"))
    }

    @Test func `missing process details leave the condition open unless another part decides it`() throws {
        let ended = Self.process(nil, nil)
        let reason = "it was written by process 7, and that process had exited before its name could be read"
        #expect(try Self.by("cp").answer(ended) == .unknown(reason))
        #expect(try Condition.not(Self.by("cp")).answer(ended) == .unknown(reason))
        let named = Self.process("cp", nil)
        #expect(
            try Self.by("/usr/bin/cp").answer(named)
                == .unknown("it was written by 'cp' (process 7), and the path of its program could not be read"))
        #expect(try Self.by("/usr/bin/cp", "cp").answer(named) == .holds)
    }

    @Test(arguments: [
        (Writer.notAsked, "the writer is known only when the file is written"),
        (.unknown(.unseen), "the writer is unknown: the kernel did not report it"),
        (.unknown(.overflow), "the writer is unknown: the kernel's event queue overflowed"),
        (
            .unknown(.denied),
            "the writer is unknown: the kernel reports it only to programs with CAP_SYS_ADMIN, such as those of root"
        ),
    ])
    func `an unknown writer leaves the condition open with a reason`(writer: Writer, reason: String) throws {
        #expect(try Self.by("cp").answer(Self.input(writer)) == .unknown(reason))
        #expect(try Condition.any([Self.by("cp"), .name([Glob("a.*")])]).answer(Self.input(writer)) == .holds)
    }
}
