import ActionAPI
import CAlightLinux
import Foundation
@testable import Programs
import Rules
import System
import Testing
import TestKit

/// The environment that the launcher sets up for a program, as the program sees it.
struct ConfinementTests {
    let launcher: ProcessLauncher
    let stop = StopSignal()

    init() throws { launcher = try makeLauncher() }

    func run(_ script: String, _ change: (inout ProgramConfinement) -> Void) -> ProgramResult {
        var command = shell(script)
        change(&command.confinement)
        return launcher.runBlocking(command, stop: stop)
    }

    func python(
        _ script: String, timeout: Duration = .seconds(60), _ change: (inout ProgramConfinement) -> Void
    ) -> ProgramResult {
        var command = Command(
            executable: "/usr/bin/python3", arguments: [Array("-Sc".utf8), Array(script.utf8)], timeout: timeout,
            grace: .milliseconds(200))
        change(&command.confinement)
        return launcher.runBlocking(command, stop: stop)
    }

    @Test func `a permission error counts as temporary only for an unconfined program`() {
        var confinements = Array(repeating: ProgramConfinement(), count: 4)
        confinements[1].user = RunAsTests.nobody
        confinements[2].grants = []
        confinements[3].allowsNetwork = false
        #expect(confinements.map { ProgramResult.Miss.forbidden.mayPass(in: $0) } == [true, false, false, false])
        #expect(confinements.map { ProgramResult.Miss.gone.mayPass(in: $0) } == [true, true, true, true])
    }

    // MARK: - Priorities

    @Test func `umask and niceness are those of the rule`() {
        let result = run("umask; nice") {
            $0.umask = 0o002
            $0.nice = 7
        }
        #expect(result.text == "0002\n7\n")
    }

    @Test func `niceness also applies to the autogroup, where the kernel has autogroups`() {
        guard FileManager.default.fileExists(atPath: "/proc/self/autogroup") else { return }
        let result = run("cat /proc/self/autogroup") { $0.nice = 7 }
        #expect(result.text.hasSuffix(" nice 7\n"))
    }

    @Test(arguments: [
        (IOPriority.idle, 3 << 13), (.bestEffort(nil), 2 << 13 | 4), (.bestEffort(7), 2 << 13 | 7),
    ])
    func `the disk priority is that of the rule`(priority: IOPriority, number: Int) {
        #if arch(x86_64)
        let call = 252
        #else
        let call = 31
        #endif
        let script = "import ctypes; print(ctypes.CDLL(None).syscall(\(call), 1, 0))"
        #expect(python(script) { $0.ioPriority = priority }.text == "\(number)\n")
    }

    @Test(.enabled(if: geteuid() == 0)) func `root may raise the priority of programs`() {
        let result = run("nice") {
            $0.nice = -5
            $0.ioPriority = .realtime(0)
        }
        #expect(result.text == "-5\n")
    }

    // MARK: - Limits

    @Test func `the kernel enforces the limits`() {
        let result = run("ulimit -St; ulimit -Ht; ulimit -d; ulimit -n; ulimit -Hn; ulimit -f; ulimit -p") {
            $0.limits.cpu = .milliseconds(1500)
            $0.limits.memory = 512 << 20
            $0.limits.files = 64
            $0.limits.fileSize = 1 << 20
            $0.limits.processes = 500
        }
        // dash reports memory in KiB and file sizes in blocks.
        #expect(result.text == "2\n3\n524288\n64\n64\n2048\n500\n")
    }

    @Test func `a program that exceeds its CPU time gets SIGXCPU`() {
        let result = python("while True: pass") { $0.limits.cpu = .seconds(1) }
        #expect(result.termination == .signalled(SIGXCPU))
    }

    @Test func `a program that ignores SIGXCPU is killed, and the launcher reports why`() {
        let script = "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
        let result = python(script) { $0.limits.cpu = .seconds(1) }
        #expect(result.termination == .signalled(SIGXCPU))
    }

    @Test func `a program killed for another reason is not reported as out of CPU time`() {
        let result = run("kill -9 $$") { $0.limits.cpu = .seconds(1) }
        #expect(result.termination == .signalled(SIGKILL))
    }

    @Test func `limits on memory, descriptors and file size are enforced`() throws {
        let memory = python("try: bytearray(256 << 20)\nexcept MemoryError: print('no more')") {
            $0.limits.memory = 128 << 20
        }
        #expect(memory.text == "no more\n")
        // Memory that is only reserved does not count, as it would for RLIMIT_AS.
        let reserved = python("import mmap; mmap.mmap(-1, 4 << 30, prot=0); print('reserved')") {
            $0.limits.memory = 128 << 20
        }
        #expect(reserved.text == "reserved\n")
        let files = python(
            "fs = []\ntry:\n  while True: fs.append(open('/dev/null'))\nexcept OSError as e: print(e.errno)"
        ) { $0.limits.files = 32 }
        #expect(files.text == "\(EMFILE)\n")
        let directory = TemporaryDirectory()
        let size = run("exec head -c 100000 /dev/zero >'\(directory.path)/f'") { $0.limits.fileSize = 1000 }
        #expect(size.termination == .signalled(SIGXFSZ))
    }

    // MARK: - Refused plans

    @Test(.enabled(if: geteuid() != 0)) func `a setting that needs root fails the start for other users`() {
        let nice = run("true") { $0.nice = -20 }
        #expect(nice.termination == .couldNotStart("cannot set 'nice' to -20: Permission denied"))
        let user = run("true") {
            $0.user = ProgramUser(text: "root", name: "root", uid: 0, gid: 0, groups: [0], home: "/root")
        }
        #expect(user.termination == .couldNotStart("cannot become user 'root': Operation not permitted"))
    }

    @Test func `a plan of another version, a truncated plan and one that is too long are refused`() throws {
        let path = try #require(ProcessLauncher.find())
        let plan = try #require(LaunchPlan(shell("true"), descriptorLimit: 0)).bytes
        var old = plan
        old[7] = UInt8(ascii: "1")
        var short = plan
        short[8] -= 20
        var long = plan + [0]
        long[8] += 1
        var counts = plan
        // The last count before the strings of the environment is much larger than the rest of the plan.
        counts.replaceSubrange(plan.count - 8..<plan.count, with: [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0])
        for (bytes, reason) in [
            (old, "the plan is of another version"), (short, "the plan is truncated"),
            (long, "the plan is longer than it specifies"), (counts, "a string of the plan contains a NUL"),
        ] {
            let termination = try Self.feed(bytes, to: path)
            #expect(termination == .notLaunched(reason))
        }
    }

    /// Sends these bytes to a launcher as a plan and returns how it ended.
    private static func feed(_ bytes: [UInt8], to path: PathBytes) throws -> ProgramResult.Termination? {
        let launcher = try Spawner(path).makeLauncher()
        var pipe: [Int32] = [-1, -1]
        try #require(cal_pipe(&pipe) == 0)
        let top = OwnedDescriptor(open("/", O_RDONLY | O_CLOEXEC))
        #expect(launcher.run(bytes, with: [pipe[0], pipe[1], pipe[1], top.raw]) == 0)
        let reading = OwnedDescriptor(pipe[0])
        let program = LaunchedProgram(
            launcher, of: ProcessLauncher(launcher: path), input: OwnedDescriptor(pipe[1]), output: reading,
            error: reading)
        #expect(Deadline.wait { program.checkForEnd() })
        return program.end
    }
}
