import ActionAPI
import Foundation
import Glibc
import Programs
import System
import Testing
import TestKit

/// Each body runs in its own process, so that descriptors and children can be counted exactly.
struct LeakTests {
    @Test func `two hundred runs on sixteen threads leave nothing behind`() async {
        await #expect(processExitsWith: .success) {
            let launcher = try makeLauncher()
            let stop = StopSignal()
            // Foundation creates its manager thread and its descriptors at the first run.
            _ = launcher.runBlocking(shell("true"), stop: stop)
            launcher.endIdle()
            let before = openDescriptors()
            let failures = Locked<[String]>([])
            onThreads(16) { thread in
                for round in 0..<13 {
                    let text = "\(thread)-\(round)"
                    let input = Array(text.utf8) + [UInt8](repeating: 0, count: round * 20_000)
                    let result = launcher.runBlocking(
                        shell("head -c \(text.utf8.count); exit 7", input: input), stop: stop)
                    if result.termination != .exited(status: 7) || result.text != text {
                        failures.change { $0.append("\(text): \(result.termination) '\(result.text)'") }
                    }
                }
            }
            #expect(failures.value == [])
            launcher.endIdle()
            #expect(Deadline.wait { openDescriptors() <= before }, "\(openDescriptors()) instead of \(before)")
            #expect(Deadline.wait { children().isEmpty }, "\(children())")
        }
    }

    @Test func `ten thousand runs, two hundred at once, all finish and leave nothing behind`() async {
        await #expect(processExitsWith: .success) {
            let launcher = try makeLauncher()
            let stop = StopSignal()
            let command = Command(executable: "/bin/true", timeout: .seconds(300))
            _ = launcher.runBlocking(command, stop: stop)
            launcher.endIdle()
            #expect(Deadline.wait { children().isEmpty }, "\(children())")
            let before = (openDescriptors(), threads())
            let failures = Locked<[String]>([])
            onThreads(200) { thread in
                for round in 0..<50 {
                    let result = runWhenPossible(command, by: launcher, stop: stop)
                    if result.termination != .exited(status: 0) {
                        failures.change { $0.append("\(thread)-\(round): \(result.termination)") }
                    }
                }
            }
            #expect(failures.value.isEmpty, "\(failures.value.count) of 10,000: \(failures.value.prefix(3))")
            launcher.endIdle()
            #expect(Deadline.wait { openDescriptors() <= before.0 }, "\(openDescriptors()) instead of \(before.0)")
            #expect(Deadline.wait { threads() <= before.1 }, "\(threads()) instead of \(before.1)")
            #expect(Deadline.wait { children().isEmpty }, "\(children())")
        }
    }

    @Test func `runs that fail or are interrupted leave nothing behind`() async {
        await #expect(processExitsWith: .success) {
            let launcher = try makeLauncher()
            let stop = StopSignal()
            _ = launcher.runBlocking(shell("true"), stop: stop)
            launcher.endIdle()
            let before = openDescriptors()
            for _ in 0..<5 {
                _ = launcher.runBlocking(Command(executable: "/nowhere", timeout: .seconds(60)), stop: stop)
                _ = launcher.runBlocking(shell("sleep 60", timeout: .milliseconds(50)), stop: stop)
                _ = launcher.runBlocking(shell("head -c 9M /dev/zero"), stop: stop)
                _ = launcher.runBlocking(shell("kill -9 $$", input: [UInt8](repeating: 0, count: 1 << 20)), stop: stop)
                _ = ProcessLauncher(launcher: "/nowhere").runBlocking(shell("true"), stop: stop)
            }
            launcher.endIdle()
            #expect(Deadline.wait { openDescriptors() <= before }, "\(openDescriptors()) instead of \(before)")
            #expect(Deadline.wait { children().isEmpty }, "\(children())")
        }
    }

    @Test func `without free descriptors a program runs or is not launched, and later runs succeed`() async {
        await #expect(processExitsWith: .success) {
            let launcher = try makeLauncher()
            let stop = StopSignal()
            _ = launcher.runBlocking(shell("true"), stop: stop)
            launcher.endIdle()
            #expect(Deadline.wait { children().isEmpty }, "\(children())")
            fillGaps()
            let before = openDescriptors()
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let usual = limit.rlim_cur
            var launched = 0
            var refused = 0
            for spare in 0...40 {
                // The kernel assigns the lowest free number, so only the spare ones are free.
                limit.rlim_cur = rlim_t(before - 1 + spare)
                setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                let result = launcher.runBlocking(shell("cat; exit 3", input: [65]), stop: stop)
                launcher.endIdle()
                limit.rlim_cur = usual
                setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                if case .notLaunched = result.termination {
                    refused += 1
                    continue
                }
                launched += 1
                #expect(result.termination == .exited(status: 3), "with \(spare) spare descriptors")
                #expect(result.text == "A")
            }
            #expect((1...30).contains(launched), "\(launched) with \(before) descriptors before")
            #expect(launcher.runBlocking(shell("exit 4"), stop: stop).termination == .exited(status: 4))
            launcher.endIdle()
            // Foundation leaks the two descriptors of its socket pair when the system refuses a start.
            let most = before + 2 * refused
            #expect(Deadline.wait { openDescriptors() <= most }, "\(openDescriptors()) instead of \(most)")
        }
    }

    @Test func `programs get the descriptor limit that Alight was started with`() async {
        await #expect(processExitsWith: .success) {
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            limit.rlim_cur = min(3000, limit.rlim_max)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let launcher = try makeLauncher()
            let result = launcher.runBlocking(shell("ulimit -n"), stop: StopSignal())
            #expect(result.text == "\(limit.rlim_cur)\n")
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            #expect(limit.rlim_cur == limit.rlim_max)
        }
    }

    @Test func `signals that Alight ignores are not ignored by a program`() async {
        await #expect(processExitsWith: .success) {
            signal(SIGHUP, SIG_IGN)
            signal(SIGCHLD, SIG_DFL)
            signal(SIGUSR1, SIG_IGN)
            let result = try makeLauncher().runBlocking(shell("grep SigIgn /proc/self/status"), stop: StopSignal())
            #expect(result.text == "SigIgn:\t0000000000000000\n")
        }
    }

    @Test func `serving plugins, including misbehaving ones, leave nothing behind`() async {
        await #expect(processExitsWith: .success) {
            _ = try makeLauncher().runBlocking(shell("true"), stop: StopSignal())
            let before = openDescriptors()
            let threads = Locked(0)
            for round in 0..<3 {
                let scripts = [
                    "ready()\nfor request in requests(): result(request)\n",
                    "ready()\nfor request in requests():\n    if request['interrupted']: result(request)\n    else: os.abort()\n",
                    "ready()\nfor request in requests(): os.write(1, b'x' * 3_000_000)\n",
                    "sys.exit(1)\n",
                    "ready()\nfor request in requests():\n    if request['interrupted']: result(request)\n    else: os.close(1); time.sleep(600)\n",
                ]
                for script in scripts {
                    let serving = try ServingStage(script)
                    let outcomes = serving.ask(all: 4)
                    #expect(outcomes.count == 4)
                    serving.close()
                    #expect(serving.started.allSatisfy(isGone))
                    #expect(serving.leftovers == [])
                }
                if round == 0 { threads.change { $0 = runningThreads() } }
            }
            #expect(Deadline.wait { openDescriptors() <= before }, "\(openDescriptors()) instead of \(before)")
            #expect(Deadline.wait { children().isEmpty }, "\(children())")
            // Threads that wait for events stay, as many as have been needed at once.
            #expect(
                Deadline.wait { runningThreads() <= threads.value + 5 },
                "\(runningThreads()) instead of \(threads.value)")
        }
    }
}

private func runningThreads() -> Int {
    ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []).count
}

/// Returns the number of open descriptors, including the one that lists them.
///
/// Foundation closes its socket shortly after it has reported the exit of a program, so the first count may be
/// one too high. This is the reason for `<=` above.
private func openDescriptors() -> Int {
    ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []).count
}

private func threads() -> Int {
    ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []).count
}

/// Opens descriptors until every number below the highest open one is in use.
///
/// The process of one test inherits the descriptors that are open in other tests at that time, with gaps.
private func fillGaps() {
    let open = ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []).compactMap { Int32($0) }
    while true {
        let descriptor = Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard descriptor < open.max() ?? 0 else {
            close(descriptor)
            return
        }
    }
}

/// Returns the children of all threads, including zombies.
private func children() -> [String] {
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    return threads.flatMap { thread -> [String] in
        let list = (try? String(contentsOfFile: "/proc/self/task/\(thread)/children", encoding: .utf8)) ?? ""
        return list.split(separator: " ").map(String.init)
    }
}

/// Runs a command, and repeats this while it could not be launched.
///
/// On a busy machine so many programs run at once that descriptors run out. The engine retries as well.
private func runWhenPossible(_ command: Command, by launcher: ProcessLauncher, stop: StopSignal) -> ProgramResult {
    let deadline = ContinuousClock.now + .seconds(120)
    while true {
        let result = launcher.runBlocking(command, stop: stop)
        guard case .notLaunched = result.termination, ContinuousClock.now < deadline else { return result }
    }
}
