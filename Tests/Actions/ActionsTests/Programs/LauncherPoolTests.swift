import ActionAPI
import CAlightLinux
import Foundation
import Glibc
import Logging
@testable import Programs
import Rules
import System
import Testing
import TestKit

/// One launcher runs many programs, which do not affect each other.
struct LauncherPoolTests {
    let launcher: ProcessLauncher
    let stop = StopSignal()

    init() throws { launcher = try makeLauncher() }

    /// Runs a script and returns its output, the process ID of its launcher, and how it ended.
    private func run(
        _ script: String, timeout: Duration = .seconds(60), _ change: (inout ProgramConfinement) -> Void = { _ in }
    ) throws -> (output: String, launcher: pid_t, termination: ProgramResult.Termination) {
        var command = shell("echo $PPID; \(script)", timeout: timeout, grace: .milliseconds(100))
        change(&command.confinement)
        let result = launcher.runBlocking(command, stop: stop)
        let lines = result.text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
        return (lines.count > 1 ? String(lines[1]) : "", try #require(pid_t(lines[0])), result.termination)
    }

    @Test func `a launcher runs one program after another`() throws {
        let first = try run("exit 3")
        let second = try run("kill -9 $$")
        let third = try run("echo hi")
        #expect(first.termination == .exited(status: 3))
        #expect(second.termination == .signalled(SIGKILL))
        #expect(third.output == "hi\n")
        #expect(Set([first.launcher, second.launcher, third.launcher]).count == 1)
    }

    @Test func `the changes of one plan do not affect the next program`() throws {
        let report =
            "umask; nice; ulimit -n; ulimit -t; pwd; env | sort; cat /proc/self/status | grep -E 'Seccomp:|NoNew'"
        let before = try run(report)
        let between = try run("cd /tmp; \(report)") {
            $0.umask = 0o777
            $0.nice = 7
            $0.limits.files = 20
            $0.limits.cpu = .seconds(9)
            $0.allowsNetwork = false
        }
        let after = try run(report)
        #expect(between.launcher == before.launcher && after.launcher == before.launcher)
        #expect(between.output != before.output)
        #expect(after.output == before.output)
    }

    @Test func `a launcher runs the next program after a failed start and after a timeout`() throws {
        let first = try run("echo hi")
        let missing = launcher.runBlocking(Command(executable: "/nowhere/x", timeout: .seconds(60)), stop: stop)
        #expect(missing.termination == .couldNotStart("cannot start '/nowhere/x': No such file or directory"))
        #expect(try run("trap '' TERM; sleep 600 & wait; wait", timeout: .milliseconds(200)).termination == .timedOut)
        let last = try run("echo hi")
        #expect(last.output == "hi\n")
        #expect(last.launcher == first.launcher)
    }

    @Test func `an order that comes after the exit does not affect the next program`() throws {
        let process = try Spawner(try #require(ProcessLauncher.find())).makeLauncher()
        #expect(process.send(.terminate))
        #expect(process.send(.kill))
        let plan = try #require(LaunchPlan(shell("exit 3"), descriptorLimit: 0)).bytes
        let null = OwnedDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC))
        let top = OwnedDescriptor(open("/", O_RDONLY | O_CLOEXEC))
        for _ in 0..<2 {
            #expect(process.run(plan, with: [null.raw, null.raw, null.raw, top.raw]) == 0)
            let program = LaunchedProgram(process, of: launcher, input: null, output: null, error: null)
            #expect(Deadline.wait { program.checkForEnd() })
            #expect(program.end == .exited(status: 3))
            program.kill()
            #expect(process.send(.kill))
        }
    }

    @Test func `a launcher that was killed while it waited is replaced`() throws {
        let first = try run("echo hi")
        let child = try waitingChild(of: first.launcher)
        #expect(kill(first.launcher, SIGKILL) == 0)
        // The child has a copy of the control socket until it exits.
        #expect(Deadline.wait { isGone(first.launcher) && isGone(child) })
        let second = try run("echo hi")
        #expect(second.output == "hi\n")
        #expect(second.launcher != first.launcher)
    }

    // MARK: - The child that waits for a plan

    /// Returns the process that becomes the next program of a launcher.
    private func waitingChild(of launcher: pid_t) throws -> pid_t {
        var children: [pid_t] = []
        #expect(
            Deadline.wait {
                children = Descendants.of(launcher)
                // Before it has its own session, it may not be set up yet to exit with its launcher.
                return children.count == 1 && children.allSatisfy { getsid($0) == $0 }
            })
        return try #require(children.first)
    }

    /// Whether a process sleeps and has no pending SIGTERM, SIGINT or SIGHUP.
    private func hasTakenSignals(_ process: pid_t) -> Bool {
        guard let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8) else { return false }
        func value(_ name: String) -> Substring? {
            status.split(separator: "\n").first { $0.hasPrefix(name + ":") }?.dropFirst(name.count + 1)
        }
        let waiting = value("ShdPnd").flatMap { UInt64($0.filter { !$0.isWhitespace }, radix: 16) } ?? .max
        let orders = [SIGTERM, SIGINT, SIGHUP].map { UInt64(1) << UInt64($0 - 1) }
        return value("State")?.contains("S (") == true && orders.allSatisfy { waiting & $0 == 0 }
    }

    @Test func `a child that was killed while it waited is replaced`() throws {
        let first = try run("echo hi")
        for _ in 0..<3 {
            let child = try waitingChild(of: first.launcher)
            #expect(kill(child, SIGKILL) == 0)
            #expect(Deadline.wait { isGone(child) })
            let second = try run("echo hi")
            #expect(second.output == "hi\n")
            #expect(second.launcher == first.launcher)
        }
    }

    @Test(arguments: [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGTSTP])
    func `signals to a process that waits for a plan do not reach the program`(number: Int32) throws {
        let signals = "grep -E 'SigPnd|ShdPnd|SigBlk|SigIgn' /proc/self/status; sleep 0.1"
        let first = try run(signals)
        let child = try waitingChild(of: first.launcher)
        #expect(kill(child, number) == 0 && kill(first.launcher, number) == 0)
        #expect(Deadline.wait { hasTakenSignals(child) && hasTakenSignals(first.launcher) })
        let second = try run(signals)
        #expect(second.termination == .exited(status: 0))
        #expect(second.output == first.output)
        #expect(first.output.filter { $0 == "0" }.count == 4 * 16, "\(first.output)")
        #expect(second.launcher == first.launcher)
    }

    @Test(arguments: [(SIGTERM, SIGTERM), (SIGHUP, SIGKILL)])
    func `a program can have its launcher terminate it at once`(asked: Int32, met: Int32) throws {
        for _ in 0..<20 {
            let result = try run("kill -\(asked) $PPID; sleep 600")
            #expect(result.termination == .signalled(met))
        }
    }

    @Test func `a stopped child continues when the launcher resumes it`() throws {
        let process = try Spawner(try #require(ProcessLauncher.find())).makeLauncher()
        let child = try waitingChild(of: process.identifier)
        #expect(kill(child, SIGSTOP) == 0)
        let plan = try #require(LaunchPlan(shell("exit 3"), descriptorLimit: 0)).bytes
        let null = OwnedDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC))
        let top = OwnedDescriptor(open("/", O_RDONLY | O_CLOEXEC))
        #expect(process.run(plan, with: [null.raw, null.raw, null.raw, top.raw]) == 0)
        let program = LaunchedProgram(
            process, of: launcher, input: null, output: null, error: null)
        #expect(!program.hasStarted)
        process.resume()
        #expect(Deadline.wait { program.checkForEnd() })
        #expect(program.end == .exited(status: 3))
    }

    // MARK: - Programs that reach for resources of others

    @Test func `a program that truncates its launcher's standard output does no harm`() throws {
        let first = try run(": >/proc/$PPID/fd/1; echo hi")
        let second = try run(": >/proc/$PPID/fd/1; echo hi")
        let third = try run("readlink /proc/$PPID/fd/1")
        #expect(first.termination == .exited(status: 0) && first.output == "hi\n")
        #expect(second.termination == .exited(status: 0) && second.output == "hi\n")
        #expect(third.output == "/dev/null\n")
        #expect(Set([first.launcher, second.launcher, third.launcher]).count == 1)
    }

    @Test func `the shared memory of the program counters keeps its size`() throws {
        let (counters, file) = try StartCounters.make()
        for size in [0, 1 << 20] {
            let result = ftruncate(file.descriptor, size)
            #expect(result != 0)
        }
        #expect(try counters.take().value == 0)
    }

    @Test func `the number of a counter is used again when nothing refers to it any more`() throws {
        let (counters, _) = try StartCounters.make()
        do {
            let three = try (0..<3).map { _ in try counters.take() }
            #expect(three.map(\.number) == [0, 1, 2])
        }
        let four = try (0..<4).map { _ in try counters.take() }
        #expect(Set(four.map(\.number)) == [0, 1, 2, 3])
    }

    @Test(arguments: [true, false]) func `Alight's ends of the pipes do not block`(converses: Bool) throws {
        let program = try launcher.start(shell("exit 0"), converses: converses)
        for end in [program.input, program.output, program.error] {
            let flags = fcntl(end.raw, F_GETFL)
            #expect(flags & O_NONBLOCK != 0)
        }
        #expect(Deadline.wait { program.checkForEnd() })
    }

    /// A program that fills its standard input, creates the file `full`, and continues with the given lines of Python.
    private func filling(_ directory: TemporaryDirectory, then rest: String, timeout: Duration = .seconds(60))
        -> Command
    {
        let script = """
            import os, sys, time
            pipe = os.open('/proc/self/fd/0', os.O_WRONLY | os.O_NONBLOCK)
            count = 0
            try:
                while True: count += os.write(pipe, b'x' * 4096)
            except BlockingIOError: pass
            open('\(directory.path)/full', 'w').close()
            \(rest)
            """
        return Command(
            executable: "/usr/bin/python3", arguments: [Array("-Sc".utf8), Array(script.utf8)], timeout: timeout,
            grace: .milliseconds(100))
    }

    @Test func `a program that fills its own input is terminated at its timeout`() throws {
        let directory = TemporaryDirectory()
        let command = filling(directory, then: "time.sleep(600)", timeout: .milliseconds(100))
        #expect(launcher.runBlocking(command, stop: stop).termination == .timedOut)
    }

    @Test func `a request that does not fit into the pipe arrives complete`() throws {
        let directory = TemporaryDirectory()
        let rest = """
            print(count)
            os.close(pipe)
            sys.stdout.flush()
            sys.stdout.buffer.write(sys.stdin.buffer.read())
            """
        let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var command = filling(directory, then: rest)
        command.input = bytes
        let result = launcher.runBlocking(command, stop: stop)
        #expect(result.termination == .exited(status: 0))
        #expect(result.output == Array("0\n".utf8) + bytes)
    }

    // MARK: - Spawners and launchers that fail

    @Test func `a killed spawner is replaced, and its launchers continue`() throws {
        let spawner = Spawner(try #require(ProcessLauncher.find()))
        var launchers: [LauncherProcess] = []
        for _ in 0..<4 {
            launchers.append(try spawner.makeLauncher())
            #expect(kill(spawner.processes[0], SIGKILL) == 0)
        }
        for process in spawner.processes { kill(process, SIGKILL) }
        launchers.append(try spawner.makeLauncher())
        #expect(launchers.allSatisfy { !isGone($0.identifier) && !$0.hasExited })
        let children = Descendants.children(of: getpid())
        #expect(launchers.allSatisfy { children.contains($0.identifier) })
    }

    @Test func `a launcher that was killed while it is idle is reaped`() throws {
        let first = try run("echo hi")
        #expect(kill(first.launcher, SIGKILL) == 0)
        #expect(Deadline.wait { Descendants.state(of: first.launcher) == nil })
    }

    @Test func `a program that its killed launcher had not started counts as not launched`() throws {
        let first = try run("echo hi")
        #expect(kill(try waitingChild(of: first.launcher), SIGSTOP) == 0)
        let program = try launcher.start(shell("echo hi"))
        #expect(!program.checkForEnd())
        #expect(kill(first.launcher, SIGKILL) == 0)
        #expect(Deadline.wait { program.checkForEnd() })
        #expect(program.end == .notLaunched("alight-launch exited before the program started"))
        #expect(!program.hasStarted)
    }

    @Test func `a program that exits in time has exited, though its stopped launcher could not report it`() throws {
        let first = try run("echo hi")
        _ = try waitingChild(of: first.launcher)
        #expect(kill(first.launcher, SIGSTOP) == 0)
        #expect(Deadline.wait { Descendants.state(of: first.launcher) == "T" })
        let second = try run("echo there", timeout: .seconds(1))
        #expect(second.termination == .exited(status: 0))
        #expect(second.output == "there\n")
        #expect(second.launcher == first.launcher)
    }

    @Test func `a stopped launcher is resumed when its program times out`() throws {
        let ids = TemporaryDirectory()
        let first = try run("echo hi")
        let script = "setsid sleep 600 & echo $! >'\(ids.path)/ids'; kill -STOP $PPID; sleep 600"
        let result = try run(script, timeout: .seconds(1))
        #expect(result.launcher == first.launcher)
        #expect(result.termination == .timedOut)
        let processes = ids.processes(in: "ids")
        #expect(processes.count == 1)
        #expect(processes.allSatisfy(isGone))
        #expect(try run("echo hi").output == "hi\n")
    }

    @Test func `a launcher that cannot be resumed is killed with all its processes`() throws {
        let directory = TemporaryDirectory()
        // SIGCONT does not resume a traced process.
        let script = """
            import ctypes, os, subprocess, time
            child = subprocess.Popen(['sleep', '600'], start_new_session=True)
            trace = ctypes.CDLL(None).ptrace
            trace.argtypes = [ctypes.c_long] * 4
            if trace(16, os.getppid(), 0, 0) != 0: raise SystemExit('not traced')
            open('\(directory.path)/i', 'w').write('%d\\n%d\\n' % (child.pid, os.getpid()))
            os.rename('\(directory.path)/i', '\(directory.path)/ids')
            time.sleep(600)
            """
        let command = Command(
            executable: "/usr/bin/python3", arguments: [Array("-Sc".utf8), Array(script.utf8)], timeout: .seconds(2),
            grace: .milliseconds(100))
        let result = launcher.runBlocking(command, stop: stop)
        #expect(result.termination == .timedOut, "\(result)")
        let processes = directory.processes(in: "ids")
        #expect(processes.count == 2)
        #expect(Deadline.wait { processes.allSatisfy(isGone) })
    }

    @Test func `a launcher that accepts no plan is replaced`() throws {
        let first = try run("echo hi")
        #expect(kill(try waitingChild(of: first.launcher), SIGSTOP) == 0)
        var command = shell("echo hi")
        // More than the socket buffer can hold.
        for index in 0..<4 { command.environment.append(("LONG\(index)", [UInt8](repeating: 65, count: 120_000))) }
        #expect(launcher.runBlocking(command, stop: stop).text == "hi\n")
        #expect(Deadline.wait { isGone(first.launcher) })
    }

    @Test func `a path that cannot be opened for a program uses up no launcher`() throws {
        let first = try run("echo hi")
        for _ in 0..<20 {
            var (confined, placed) = (shell("true"), shell("true"))
            confined.confinement.grants = [ProgramConfinement.Grant(location: "/nowhere", access: .read)]
            placed.directory = "/nowhere"
            let terminations = [confined, placed].map { launcher.runBlocking($0, stop: stop).termination }
            #expect(
                terminations == [
                    .couldNotStart("cannot add '/nowhere' to its sandbox: No such file or directory"),
                    .couldNotStart("cannot enter the directory '/nowhere': No such file or directory"),
                ])
            let next = try run("echo hi")
            #expect(next.output == "hi\n" && next.launcher == first.launcher)
        }
    }

    @Test func `a plan that no launcher accepts fails permanently`() {
        let arguments = (0..<200).map { _ in [UInt8](repeating: 65, count: 100_000) }
        let result = launcher.runBlocking(
            Command(executable: "/bin/true", arguments: arguments, timeout: .seconds(60)), stop: stop)
        #expect(result.termination == .couldNotStart("its arguments and its environment are too long"))
    }

    @Test func `a program that asks to be traced by its parent runs`() {
        let script = "import ctypes, os; ctypes.CDLL(None).ptrace(0, 0, 0, 0); os.execv('/bin/echo', ['echo', 'hi'])"
        let command = Command(
            executable: "/usr/bin/python3", arguments: [Array("-Sc".utf8), Array(script.utf8)], timeout: .seconds(60))
        let result = launcher.runBlocking(command, stop: stop)
        #expect(result.termination == .exited(status: 0))
        #expect(result.text == "hi\n")
    }

    @Test func `one of several idle launchers remains`() throws {
        let pool = LauncherPool(idleTime: .milliseconds(20))
        let spawner = Spawner(try #require(ProcessLauncher.find()))
        let launchers = try (0..<3).map { _ in try spawner.makeLauncher() }
        let processes = launchers.map(\.identifier)
        for launcher in launchers { pool.give(launcher) }
        _ = consume launchers
        #expect(Deadline.wait { isGone(processes[0]) && isGone(processes[1]) })
        #expect(pool.take()?.identifier == processes[2])
        #expect(Deadline.wait { isGone(processes[2]) })
    }

    @Test func `a program is killed when nothing refers to its run any more`() throws {
        let directory = TemporaryDirectory()
        func begin() throws {
            let program = try launcher.start(
                shell("echo $$ >'\(directory.path)/i'; mv '\(directory.path)/i' '\(directory.path)/ids'; sleep 600"))
            #expect(Deadline.wait { directory.text(of: "ids") != nil })
            #expect(!program.checkForEnd())
        }
        try begin()
        #expect(Deadline.wait { directory.processes(in: "ids").allSatisfy(isGone) })
    }
}
