import ActionAPI
import Foundation
import Glibc
import PluginProtocol
@testable import Programs
import Rules
import System
import Testing
import TestKit

/// No process outlives a program that kills its launcher.
///
/// Each test runs in its own process, which adopts orphans.
struct OrphanTests {
    /// A program that kills the launcher once it has descendants of each kind, and keeps running.
    static let killer = """
        import os, sys
        launcher = os.getppid()
        sys.argv[2] = 'leave'
        exec(sys.argv[3])
        os.kill(launcher, 9)
        time.sleep(600)
        """

    static func command(_ script: String, _ arguments: [String] = []) -> Command {
        Command(
            executable: "/usr/bin/python3", arguments: (["-Sc", script] + arguments).map { Array($0.utf8) },
            timeout: .seconds(300))
    }

    @Test func `the processes of a program die with the launcher that it kills`() async {
        await #expect(processExitsWith: .success) {
            Orphans.adopt()
            let launcher = try makeLauncher()
            for _ in 0..<3 {
                let directory = TemporaryDirectory()
                let command = OrphanTests.command(
                    OrphanTests.killer, [directory.path.description, "", LeftoverTests.escape])
                #expect(launcher.runBlocking(command, stop: StopSignal()).termination == .signalled(SIGKILL))
                let processes = directory.processes(in: "ids")
                #expect(processes.count == 5 && processes.allSatisfy(isGone), "\(processes.filter { !isGone($0) })")
            }
        }
    }

    @Test func `a chain that keeps forking dies with the launcher too`() async {
        await #expect(processExitsWith: .success) {
            Orphans.adopt()
            let chain = """
                import os, time
                launcher = os.getppid()
                end = time.time() + 300
                if os.fork():
                    time.sleep(0.1)
                    os.kill(launcher, 9)
                    time.sleep(600)
                while time.time() < end:
                    if os.fork(): os._exit(0)
                    os.setsid()
                """
            let result = try makeLauncher().runBlocking(OrphanTests.command(chain), stop: StopSignal())
            #expect(result.termination == .signalled(SIGKILL))
            #expect(Descendants.of(getpid()).allSatisfy { getsid($0) == getsid(0) })
        }
    }

    @Test func `programs of other launchers and unrelated processes keep running`() async {
        await #expect(processExitsWith: .success) {
            Orphans.adopt()
            let launcher = try makeLauncher()
            let directory = TemporaryDirectory()
            let path = directory.path.description
            let background = call("/bin/sh", ["-c", "sleep 600 >/dev/null & echo $! >other"], in: directory.path)
            #expect(background.status == 0)
            let other = try #require(directory.processes(in: "other").first)
            // A confinement of this process also applies to the other one.
            let isOther = !Descendants.hasNoNewPrivileges(other)
            let termination = Locked<ProgramResult.Termination?>(nil)
            Thread.detachNewThread {
                let script = "echo $$ >'\(path)/neighbour'; until test -e '\(path)/go'; do sleep 0.01; done; exit 7"
                let result = launcher.runBlocking(shell(script, timeout: .seconds(300)), stop: StopSignal())
                termination.change { $0 = result.termination }
            }
            #expect(Deadline.wait { directory.processes(in: "neighbour").count == 1 })
            let result = launcher.runBlocking(
                shell("kill -9 $PPID; sleep 600", timeout: .seconds(300)), stop: StopSignal())
            #expect(result.termination == .signalled(SIGKILL))
            #expect(!isOther || kill(other, 0) == 0)
            try directory.write("go", "")
            #expect(Deadline.wait { termination.value != nil })
            #expect(termination.value == .exited(status: 7))
            kill(other, SIGKILL)
        }
    }

    @Test func `the processes of a serving plugin die with the launcher that it kills`() async {
        await #expect(processExitsWith: .success) {
            Orphans.adopt()
            let directory = TemporaryDirectory()
            let serving = try ServingStage(
                """
                import subprocess, time
                ready()
                for request in requests():
                    child = subprocess.Popen(["setsid", "sleep", "600"])
                    with open('\(directory.path)/ids', 'a') as ids: ids.write('%d\\n' % child.pid)
                    os.kill(os.getppid(), 9)
                    time.sleep(600)
                """)
            let outcome = serving.ask()
            #expect(outcome.result != .succeeded)
            serving.close()
            let processes = directory.processes(in: "ids")
            #expect(!processes.isEmpty && processes.allSatisfy(isGone), "\(processes)")
        }
    }
}
