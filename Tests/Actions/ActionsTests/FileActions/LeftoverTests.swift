@testable import ActionAPI
import CAlightLinux
import Foundation
import Glibc
@testable import Programs
import System
import Testing
import TestKit

/// No process that a program starts outlives it.
struct LeftoverTests {
    let launcher: ProcessLauncher
    let stop = StopSignal()
    let directory: TemporaryDirectory

    init() throws {
        launcher = try makeLauncher()
        directory = TemporaryDirectory()
    }

    /// A program whose children try to escape in several ways and write their process IDs into `ids`.
    static let escape = """
        import os, sys, time
        def child(*steps):
            if os.fork() == 0:
                for step in steps:
                    if step == 'setsid': os.setsid()
                    if step == 'fork' and os.fork(): os._exit(0)
                    if step == 'close': os.closerange(0, 64)
                    if step == 'ignore':
                        import signal
                        for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)
                with open(sys.argv[1] + '/ids', 'a') as ids: ids.write('%d\\n' % os.getpid())
                time.sleep(600)
                os._exit(0)
        child()
        child('ignore')
        child('setsid', 'close')
        child('fork', 'setsid', 'ignore')
        child('setsid', 'fork', 'fork', 'close', 'ignore')
        while open(sys.argv[1] + '/ids', 'a+').seek(0) or len(open(sys.argv[1] + '/ids').readlines()) < 5:
            time.sleep(0.005)
        print('ready', flush=True)
        if sys.argv[2] == 'stay': time.sleep(600)
        """

    func escape(_ word: String, timeout: Duration, linger: Duration) -> Command {
        Command(
            executable: "/usr/bin/python3",
            arguments: [Array("-Sc".utf8), Array(Self.escape.utf8), directory.path.bytes, Array(word.utf8)],
            timeout: timeout, grace: .milliseconds(200), linger: linger)
    }

    @Test func `after a normal exit every descendant is dead`() {
        let result = launcher.runBlocking(
            escape("leave", timeout: .seconds(60), linger: .milliseconds(100)), stop: stop)
        #expect(result.termination == .exited(status: 0))
        #expect(result.text == "ready\n")
        let processes = directory.processes(in: "ids")
        #expect(processes.count == 5)
        #expect(processes.allSatisfy(isGone))
        #expect(result.duration < .seconds(60))
    }

    @Test func `after a timeout every descendant is dead`() {
        // The timeout must be long enough for all of them to start.
        var processes: [pid_t] = []
        for timeout in [1, 10, 60] where processes.count < 5 {
            try? FileManager.default.removeItem(atPath: "\(directory.path)/ids")
            let result = launcher.runBlocking(
                escape("stay", timeout: .seconds(timeout), linger: .seconds(2)), stop: stop)
            #expect(result.termination == .timedOut)
            processes = directory.processes(in: "ids")
        }
        #expect(processes.count == 5)
        #expect(processes.allSatisfy(isGone))
    }

    @Test func `a background process with the output open is waited for as long as it may linger`() {
        let script = "sleep 600 & echo $! >'\(directory.path)/ids'; echo hi"
        let result = launcher.runBlocking(shell(script, linger: .milliseconds(200)), stop: stop)
        #expect(result.termination == .exited(status: 0))
        #expect(result.text == "hi\n")
        #expect(result.duration >= .milliseconds(200))
        #expect(result.duration < .seconds(60))
        #expect(directory.processes(in: "ids").allSatisfy(isGone))
    }

    @Test func `a background process may finish, and its output counts`() {
        let result = launcher.runBlocking(
            shell("(sleep 0.2; echo late) & echo early", linger: .seconds(100)), stop: stop)
        #expect(result.text == "early\nlate\n")
        #expect(result.duration < .seconds(60))
    }

    @Test func `a chain that forks faster than it can be killed is killed`() {
        let chain = """
            import os, time
            end = time.time() + 100
            while time.time() < end:
                if os.fork(): os._exit(0)
                os.setsid()
            """
        let command = Command(
            executable: "/usr/bin/python3", arguments: [Array("-Sc".utf8), Array(chain.utf8)], timeout: .seconds(200),
            linger: .milliseconds(100))
        let result = launcher.runBlocking(command, stop: stop)
        #expect(result.termination == .exited(status: 0))
        #expect(result.duration < .seconds(60))
    }

    @Test func `when Alight is killed, every process that it started dies`() async throws {
        let path = directory.path.description
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let launcher = try makeLauncher()
            let script = "cd '\(path)'; sleep 600 & echo $! >>a; setsid sleep 600 & echo $! >>a; echo $$ >>a; wait"
            Thread.detachNewThread { _ = launcher.runBlocking(shell(script), stop: StopSignal()) }
            let isUp = Deadline.wait {
                (try? String(contentsOfFile: "\(path)/a", encoding: .utf8))?.split(separator: "\n").count == 3
            }
            #expect(isUp)
            kill(getpid(), SIGKILL)
        }
        let processes = directory.processes(in: "a")
        #expect(processes.count == 3)
        #expect(Deadline.wait { processes.allSatisfy(isGone) })
    }

    @Test func `when Alight is killed while a report is pending, every process dies`() throws {
        var sockets: [Int32] = [-1, -1]
        try #require(cal_socket_pair(&sockets, 10) == 0)
        let (ours, theirs) = (OwnedDescriptor(sockets[0]), OwnedDescriptor(sockets[1]))
        // The socket has no space left for the report of the launcher.
        let noise = [UInt8](repeating: 0, count: 4096)
        while send(theirs.raw, noise, noise.count, Int32(MSG_DONTWAIT)) > 0 {}
        while send(theirs.raw, noise, 1, Int32(MSG_DONTWAIT)) > 0 {}
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try #require(ProcessLauncher.find()).description)
        process.standardInput = FileHandle(fileDescriptor: theirs.raw, closeOnDealloc: false)
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        theirs.close()
        let script =
            "cd '\(directory.path)'; sleep 600 & echo $! >>a; setsid sleep 600 & echo $! >>a; echo $$ >>a; wait"
        let plan = try #require(LaunchPlan(shell(script), descriptorLimit: 0)).bytes
        let null = OwnedDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC))
        let top = OwnedDescriptor(open("/", O_RDONLY | O_CLOEXEC))
        #expect(
            cal_send_with_descriptors(ours.raw, plan, plan.count, [null.raw, null.raw, null.raw, top.raw], 4, 1) == 0)
        #expect(Deadline.wait { directory.processes(in: "a").count == 3 })
        ours.close()
        process.waitUntilExit()
        #expect(directory.processes(in: "a").allSatisfy(isGone))
    }

    @Test func `when the launcher is killed, the program dies`() throws {
        let directory = directory
        Thread.detachNewThread {
            _ = Deadline.wait { directory.processes(in: "ids").count == 2 }
            for process in directory.processes(in: "ids").suffix(1) { kill(process, SIGKILL) }
        }
        let script = "cd '\(directory.path)'; (echo $$; echo $PPID) >i; mv i ids; exec sleep 600"
        let result = launcher.runBlocking(shell(script), stop: stop)
        #expect(result.termination == .signalled(SIGKILL))
        let program = try #require(directory.processes(in: "ids").first)
        #expect(Deadline.wait { isGone(program) })
    }
}
