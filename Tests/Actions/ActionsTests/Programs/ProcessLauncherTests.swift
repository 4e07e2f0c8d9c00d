import ActionAPI
import Foundation
import Logging
import Programs
import Synchronization
import System
import Testing
import TestKit

/// Whether the handler of SIGUSR2 has run.
private let hasCaught = Atomic(false)

struct ProcessLauncherTests {
    let launcher: ProcessLauncher
    let stop = StopSignal()

    init() throws { launcher = try makeLauncher() }

    func run(_ command: Command) -> ProgramResult { launcher.runBlocking(command, stop: stop) }

    // MARK: - Setup of a program

    @Test func `arguments and environment arrive byte for byte`() {
        let odd = Array("a b\n-rf $(x) '".utf8) + [0xE9, 0xFF]
        let command = Command(
            executable: "/bin/sh",
            arguments: [
                Array("-c".utf8), Array("printf %s \"$1\"; printf '|%s' \"$ODD\"".utf8), Array("sh".utf8), odd,
            ],
            environment: [("ODD", odd), ("PATH", Array("/bin".utf8))], timeout: .seconds(60))
        #expect(run(command).output == odd + [UInt8(ascii: "|")] + odd)
    }

    @Test func `a program has only the specified environment`() {
        let command = Command(
            executable: "/usr/bin/env", environment: [("ONLY", Array("1".utf8))], timeout: .seconds(60))
        #expect(run(command).text == "ONLY=1\n")
    }

    @Test func `a megabyte goes in and comes out while both pipes are full`() {
        let input = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let command = Command(executable: "/bin/cat", input: input, timeout: .seconds(60))
        let result = run(command)
        #expect(result.termination == .exited(status: 0))
        #expect(result.output == input)
    }

    @Test func `the working directory is the specified one`() {
        var command = shell("pwd")
        command.directory = "/usr/share"
        #expect(run(command).text == "/usr/share\n")
    }

    @Test func `signals, privileges, umask and session are clean`() throws {
        let result = run(shell("cat /proc/self/status; umask; echo session $(ps -o sid= -p $$) $$"))
        let text = result.text
        for line in ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000", "NoNewPrivs:\t1", "\n0027\n"] {
            #expect(text.contains(line), "no \(line)")
        }
        let session = try #require(text.split(separator: "\n").last).split(separator: " ")
        #expect(session.count == 3 && session[1] == session[2])
    }

    @Test func `a start does not unblock the blocked signals of its thread`() {
        let launcher = launcher
        let stop = stop
        onThreads(1) { _ in
            signal(SIGUSR2) { _ in hasCaught.store(true, ordering: .relaxed) }
            var set = sigset_t()
            sigemptyset(&set)
            sigaddset(&set, SIGUSR2)
            pthread_sigmask(SIG_BLOCK, &set, nil)
            pthread_kill(pthread_self(), SIGUSR2)
            #expect(launcher.runBlocking(shell("exit 0"), stop: stop).termination == .exited(status: 0))
            let isCaught = hasCaught.load(ordering: .relaxed)
            #expect(!isCaught)
            var number: Int32 = 0
            sigwait(&set, &number)
            #expect(number == SIGUSR2)
        }
    }

    @Test func `a program has only the descriptors 0, 1 and 2`() {
        let script = "import fcntl\nfor n in range(512):\n try: fcntl.fcntl(n, 1); print(n)\n except OSError: pass"
        let command = Command(
            executable: "/usr/bin/python3", arguments: [Array("-Sc".utf8), Array(script.utf8)], timeout: .seconds(60))
        #expect(run(command).text == "0\n1\n2\n")
    }

    // MARK: - Standard input

    @Test func `a program that never reads its input is not an error`() {
        let result = run(shell("echo done", input: [UInt8](repeating: 65, count: 1 << 20)))
        #expect(result.termination == .exited(status: 0))
        #expect(result.text == "done\n")
    }

    @Test func `a program that closes its input keeps running`() {
        let script = "exec <&-; echo done; exec >&- 2>&-; for i in 1 2 3; do :; done; exit 3"
        let result = run(shell(script, input: [UInt8](repeating: 65, count: 1 << 20)))
        #expect(result.termination == .exited(status: 3))
        #expect(result.text == "done\n")
    }

    @Test func `a program that reads only a part of its input is not an error`() {
        let result = run(shell("head -c 3", input: [UInt8](repeating: 65, count: 1 << 20)))
        #expect(result.text == "AAA")
    }

    // MARK: - Output

    @Test func `a gigabyte of output is truncated at the limit, and the program is terminated`() {
        let result = run(shell("head -c 1G /dev/zero", output: .collected(limit: 100_000)))
        #expect(result.termination == .outputTooLarge)
        #expect(result.output.count == 100_000)
    }

    @Test func `output of exactly the limit is not too large`() {
        let result = run(shell("head -c 100000 /dev/zero", output: .collected(limit: 100_000)))
        #expect(result.termination == .exited(status: 0))
        #expect(result.output.count == 100_000)
    }

    @Test func `the head and the tail of endless stderr are stored`() {
        let result = run(shell("echo first >&2; head -c 30M /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2"))
        #expect(result.termination == .exited(status: 0))
        #expect(result.log.text.hasPrefix("first\nxxx"))
        #expect(result.log.text.hasSuffix("xxx\nlast\n"))
        #expect(result.log.text.utf8.count < 140_000)
        #expect(result.lastLine == "last")
    }

    @Test func `lines have levels, progress and replaced bytes, in order`() {
        let reports = Locked<[ProgramReport]>([])
        let script = #"""
            printf 'plain\n<3>bad\n<7>fine\r\n<9>odd\n\n' >&2
            printf 'caf\351 \033[31mred\n' >&2
            printf '{"progress":0.4,"message":"page 5 of 12"}\n{"progress":7}\n{"other":1}\nno newline' >&2
            """#
        let result = launcher.runBlocking(shell(script), stop: stop) { line in
            reports.change { $0.append(ProgramReport(line: line)) }
        }
        #expect(
            reports.value == [
                .line(.info, "plain"), .line(.error, "bad"), .line(.debug, "fine"), .line(.info, "<9>odd"),
                .line(.info, "caf\u{FFFD} \u{FFFD}[31mred"), .progress(0.4, "page 5 of 12"), .progress(1, nil),
                .line(.info, "{\"other\":1}"), .line(.info, "no newline"),
            ])
        #expect(result.lastLine == "no newline")
    }

    @Test func `lines arrive while the program runs`() throws {
        let directory = TemporaryDirectory()
        let script = "echo waiting >&2; while ! [ -e '\(directory.path)/go' ]; do sleep 0.01; done"
        let result = launcher.runBlocking(shell(script), stop: stop) { line in
            if line.elementsEqual("waiting".utf8) { _ = try? directory.write("go", "") }
        }
        #expect(result.termination == .exited(status: 0))
    }

    @Test func `output can be logged, and is not split into lines without limit`() {
        let size = Locked(0)
        let command = shell("head -c 3M /dev/zero | tr '\\0' x; echo end", output: .reported)
        let result = launcher.runBlocking(command, stop: stop) { line in size.change { $0 += line.count } }
        #expect(result.termination == .exited(status: 0))
        #expect(size.value == OutputLines.limit)
        #expect(result.unread == 3 << 20 + 4 - OutputLines.limit)
        #expect(result.log.text.hasSuffix("xend\n"))
        #expect(result.output.isEmpty)
    }

    // MARK: - Exit

    @Test(arguments: [0, 1, 64, 75, 126, 127, 255])
    func `an exit status is reported`(status: Int32) {
        #expect(run(shell("exit \(status)")).termination == .exited(status: status))
    }

    @Test(arguments: [SIGKILL, SIGSEGV, SIGTERM, SIGHUP, SIGPIPE])
    func `a death by signal is reported`(number: Int32) {
        #expect(run(shell("kill -\(number) $$; sleep 60")).termination == .signalled(number))
    }

    @Test func `half a line before a death is retained`() {
        let result = run(shell("printf '{\"outcome\":\"succ'; kill -9 $$"))
        #expect(result.termination == .signalled(SIGKILL))
        #expect(result.text == "{\"outcome\":\"succ")
    }

    @Test func `a program that does not exist cannot be started`() {
        let result = run(Command(executable: "/nowhere/x", timeout: .seconds(60)))
        #expect(result.termination == .couldNotStart("cannot start '/nowhere/x': No such file or directory"))
        #expect(result.miss == .gone)
    }

    @Test func `a file that is not a program cannot be started, with the reason`() throws {
        let directory = TemporaryDirectory()
        let script = try directory.write("script", "#!/bin/sh\n")
        let cases: [(file: PathBytes, reason: String, miss: ProgramResult.Miss?)] = [
            (try directory.write("plain", "#!/bin/sh\n", mode: 0o644), "Permission denied", .forbidden),
            (
                try directory.write("bad", "#! /nope/python3 -u\n"), "its interpreter '/nope/python3' does not exist",
                nil
            ),
            (try directory.write("dos", "#!/bin/sh\r\n"), "its interpreter '/bin/sh\\r' does not exist", nil),
            (try directory.write("text", "echo\n"), "neither a binary of this machine nor a #! line", nil),
            (directory.path, "Permission denied", .forbidden), (script.appending("x"), "Not a directory", .gone),
        ]
        for (file, reason, miss) in cases {
            let result = run(Command(executable: file, timeout: .seconds(60)))
            #expect(result.termination == .couldNotStart("cannot start '\(file)': \(reason)"))
            #expect(result.miss == miss)
        }
    }

    @Test func `a binary whose interpreter is missing is not reported as missing itself`() throws {
        let directory = TemporaryDirectory()
        var binary = try Data(contentsOf: URL(fileURLWithPath: "/bin/true"))
        let location = try #require(binary.range(of: Data("/ld-".utf8)))
        binary.replaceSubrange(location, with: Data("/no-".utf8))
        let file = directory.path.appending("tool")
        try binary.write(to: URL(fileURLWithPath: file.description))
        try #require(chmod(file.description, 0o755) == 0)
        let result = run(Command(executable: file, timeout: .seconds(60)))
        guard case .couldNotStart(let reason) = result.termination else {
            Issue.record("\(result.termination)")
            return
        }
        #expect(reason.hasPrefix("cannot start '\(file)': its interpreter '/"))
        #expect(reason.contains("/no-") && reason.hasSuffix("' does not exist"))
        #expect(result.miss == nil)
    }

    @Test func `a missing working directory, a NUL and a missing launcher are results too`() {
        var command = shell("true")
        command.directory = "/nowhere"
        #expect(
            run(command).termination
                == .couldNotStart("cannot enter the directory '/nowhere': No such file or directory"))
        let nul = run(Command(executable: "/bin/echo", arguments: [[65, 0, 66]], timeout: .seconds(60)))
        #expect(nul.termination == .couldNotStart("an argument or an environment variable contains a NUL byte"))
        let lost = ProcessLauncher(launcher: "/nowhere/alight-launch").runBlocking(shell("true"), stop: stop)
        #expect(lost.termination == .notLaunched("'/nowhere/alight-launch' can't be run: No such file or directory"))
    }

    // MARK: - Timeout and stop

    /// Runs a script that prints `up`, with a timeout that is long enough for this machine.
    private func runUntilUp(_ script: String, grace: Duration) -> ProgramResult {
        var result = run(shell(script, timeout: .milliseconds(300), grace: grace))
        for timeout in [5, 60] where result.text.isEmpty {
            result = run(shell(script, timeout: .seconds(timeout), grace: grace))
        }
        return result
    }

    @Test func `a timeout sends SIGTERM first`() {
        let script = "trap 'echo bye >&2; exit 0' TERM; echo up; sleep 100 & wait"
        let result = runUntilUp(script, grace: .seconds(100))
        #expect(result.termination == .timedOut)
        #expect(result.lastLine == "bye")
    }

    @Test func `a program that ignores SIGTERM is killed after the grace period`() {
        let result = runUntilUp("trap '' TERM; echo up; while :; do sleep 100; done", grace: .milliseconds(300))
        #expect(result.termination == .timedOut)
        #expect(result.duration >= .milliseconds(600))
        #expect(result.duration < .seconds(90))
    }

    @Test func `a stopped program still gets its SIGTERM`() {
        let result = run(shell("kill -STOP $$; sleep 100", timeout: .milliseconds(300), grace: .seconds(100)))
        #expect(result.termination == .timedOut)
        #expect(result.duration < .seconds(90))
    }

    @Test func `raising the stop signal terminates the program`() throws {
        let directory = TemporaryDirectory()
        let stop = stop
        Thread.detachNewThread {
            _ = Deadline.wait { directory.text(of: "up") != nil }
            stop.raise()
        }
        let result = run(shell("echo >'\(directory.path)/up'; sleep 600"))
        #expect(result.termination == .stopped)
    }

    @Test func `a signal raised before the start terminates the program at once`() {
        stop.raise()
        let result = run(shell("sleep 600"))
        #expect(result.termination == .stopped)
    }
}
