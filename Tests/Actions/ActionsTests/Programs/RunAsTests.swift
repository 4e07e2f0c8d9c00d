import ActionAPI
import Foundation
import PluginProtocol
import Programs
import Rules
import System
import Testing
import TestKit

/// Programs that run as another user.
///
/// These tests need root.
@Suite(.enabled(if: geteuid() == 0))
struct RunAsTests {
    static let nobody = ProgramUser(
        text: "nobody", name: "nobody", uid: 65534, gid: 65534, groups: [65534, 12345], home: "/nonexistent")

    let stage: Stage

    init() throws {
        stage = try Stage(grace: .milliseconds(300))
        // Like /run, the directory can be traversed by all users.
        chmod(stage.directory.path.description, 0o755)
    }

    func run(_ script: String, _ change: (inout Invocation) -> Void = { _ in }) -> Outcome {
        stage.run(.shell(script)) {
            $0.confinement.user = Self.nobody
            change(&$0)
        }
    }

    @Test func `a program runs as the user with all groups, and cannot switch back`() {
        let outcome = run(
            "grep -E '^(Uid|Gid|Groups|NoNewPrivs|CapEff|CapPrm|CapAmb):' /proc/self/status | tr '\\t' ' '; "
                + "python3 -c '"
                + "import os\ntry: os.setuid(0); print(\"root\")\nexcept PermissionError: print(\"stays\")'")
        #expect(outcome.result == .succeeded, "\(outcome.message)")
        for line in [
            "Uid: 65534 65534 65534 65534\n", "Gid: 65534 65534 65534 65534\n", "Groups: 12345 65534 \n",
            "NoNewPrivs: 1\n", "CapEff: 0000000000000000\n", "CapPrm: 0000000000000000\n", "stays\n",
        ] { #expect(outcome.log.contains(line), "no \(line) in \(outcome.log)") }
    }

    @Test func `the environment names the user, unless the rule overrides it`() {
        let outcome = run("echo $HOME $USER $LOGNAME $(id -un)")
        #expect(outcome.log == "/nonexistent nobody nobody nobody\n")
        let other = run("echo $HOME $USER") { $0.environment = [("HOME", Array("/srv".utf8))] }
        #expect(other.log == "/srv nobody\n")
    }

    @Test func `the user owns the scratch directory, which is removed afterwards`() {
        let outcome = run(
            "cd \"$TMPDIR\"; pwd; stat -c '%u:%g %a' . \"$TMPDIR\"; echo x >f; mkdir d; chmod 0 d; ls \"$TMPDIR/..\" || echo closed"
        )
        #expect(outcome.result == .succeeded)
        #expect(outcome.log.contains("65534:65534 700\n65534:65534 700\n"), "\(outcome.log)")
        #expect(outcome.log.contains("closed"))
        #expect(stage.leftovers == [])
    }

    @Test func `a program can open its standard output by name`() {
        let outcome = run("echo by name >/dev/stderr; echo and >/dev/stdout")
        #expect(outcome.result == .succeeded, "\(outcome.message)")
        #expect(outcome.log.contains("by name"))
    }

    @Test func `a directory or program without permission is reported, and the job fails`() throws {
        let closed = try stage.directory.directory("closed", mode: 0o700)
        let refused = run("true") { $0.directory = ProgramPath(closed) }
        #expect(refused.result == .failed && refused.code == "cannot-start")
        #expect(
            refused.message
                == "the shell command: cannot enter the directory '\(closed)' as user 'nobody': Permission denied")
        let tool = try stage.directory.write("tool", "#!/bin/sh\n", mode: 0o700)
        let program = stage.run(.exec([Template(literal: tool.description)])) { $0.confinement.user = Self.nobody }
        #expect(program.result == .failed && program.code == "cannot-start")
        #expect(program.message == "'\(tool)': cannot start '\(tool)' as user 'nobody': Permission denied")
    }

    @Test func `the limit on processes applies to a user other than root`() {
        var user = Self.nobody
        // No other process has this user ID, so only the processes of this test count.
        (user.uid, user.gid, user.groups, user.name) = (54321, 54321, [54321], nil)
        let script = """
            import os, time
            made = 0
            try:
                while made < 50:
                    if os.fork() == 0: time.sleep(600)
                    made += 1
            except BlockingIOError: print(made)
            """
        let outcome = stage.run(.exec(["/usr/bin/python3", "-Sc", script].map { Template(literal: $0) })) {
            $0.confinement.user = user
            $0.confinement.limits = ResourceLimits()
            $0.confinement.limits?.processes = 5
        }
        #expect(outcome.log == "4\n", "\(outcome)")
    }

    @Test(arguments: [false, true])
    func `a timeout terminates all processes of another user, also in a sandbox`(isConfined: Bool) throws {
        guard !isConfined || SandboxSupport.landlock > 0 else { return }
        let out = try stage.directory.directory("out", mode: 0o777)
        var processes: [pid_t] = []
        for timeout in [2, 10, 60] where processes.count < 5 {
            try? FileManager.default.removeItem(atPath: "\(out)/ids")
            let program = ["/usr/bin/python3", "-Sc", LeftoverTests.escape, out.description, "stay"]
            let outcome = stage.run(.exec(program.map { Template(literal: $0) })) {
                $0.timeout = .seconds(timeout)
                $0.confinement.user = Self.nobody
                guard isConfined else { return }
                $0.confinement.sandbox = Sandbox()
                $0.confinement.sandbox?.write = [Template(literal: out.description)]
                $0.confinement.sandbox?.allowsNetwork = false
            }
            #expect(outcome.code == "timed-out", "\(outcome)")
            #expect(outcome.message.contains("took longer"))
            processes = stage.directory.processes(in: "out/ids")
        }
        #expect(processes.count == 5)
        #expect(processes.allSatisfy(isGone))
        #expect(Self.processes(of: 65534).isDisjoint(with: processes))
    }

    @Test func `a stop also terminates the processes of another user`() throws {
        let out = try stage.directory.directory("out", mode: 0o777)
        let (directory, stop) = (stage.directory, stage.stop)
        Thread.detachNewThread {
            _ = Deadline.wait { directory.processes(in: "out/ids").count == 5 }
            stop.raise()
        }
        let program = ["/usr/bin/python3", "-Sc", LeftoverTests.escape, out.description, "stay"]
        let outcome = stage.run(.exec(program.map { Template(literal: $0) })) { $0.confinement.user = Self.nobody }
        #expect(outcome.message.contains("Alight stops"))
        let processes = stage.directory.processes(in: "out/ids")
        #expect(processes.count == 5 && processes.allSatisfy(isGone))
    }

    /// Returns the processes of a user, as listed in /proc.
    private static func processes(of user: UInt32) -> Set<pid_t> {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return Set(
            names.compactMap { pid_t($0) }.filter { process in
                var status = stat()
                return stat("/proc/\(process)", &status) == 0 && status.st_uid == user
            })
    }
}
