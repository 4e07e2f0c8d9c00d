import FileEvents
import Foundation
import Handling
import Testing

/// Each body runs in a process of its own, so that descriptors and children can be counted exactly.
struct LeakTests {
    @Test func `two hundred runs on sixteen threads leave nothing behind`() async {
        await #expect(processExitsWith: .success) {
            let launcher = try makeLauncher()
            let stop = StopSignal()
            // Foundation makes its manager thread and its descriptors at the first run.
            _ = launcher.run(shell("true"), stop: stop)
            let before = openDescriptors()
            let failures = Locked<[String]>([])
            onThreads(16) { thread in
                for round in 0..<13 {
                    let text = "\(thread)-\(round)"
                    let input = Array(text.utf8) + [UInt8](repeating: 0, count: round * 20_000)
                    let ended = launcher.run(shell("head -c \(text.utf8.count); exit 7", input: input), stop: stop)
                    if ended.way != .exited(status: 7) || ended.text != text {
                        failures.change { $0.append("\(text): \(ended.way) '\(ended.text)'") }
                    }
                }
            }
            #expect(failures.value == [])
            #expect(eventually { openDescriptors() == before }, "\(openDescriptors()) instead of \(before)")
            #expect(eventually { children().isEmpty }, "\(children())")
        }
    }

    @Test func `runs that fail or are ended leave nothing behind`() async {
        await #expect(processExitsWith: .success) {
            let launcher = try makeLauncher()
            let stop = StopSignal()
            _ = launcher.run(shell("true"), stop: stop)
            let before = openDescriptors()
            for _ in 0..<5 {
                _ = launcher.run(Command(executable: "/nowhere", timeout: .seconds(60)), stop: stop)
                _ = launcher.run(shell("sleep 60", timeout: .milliseconds(50)), stop: stop)
                _ = launcher.run(shell("head -c 9M /dev/zero"), stop: stop)
                _ = launcher.run(shell("kill -9 $$", input: [UInt8](repeating: 0, count: 1 << 20)), stop: stop)
                _ = ProcessLauncher(launcher: "/nowhere").run(shell("true"), stop: stop)
            }
            #expect(eventually { openDescriptors() == before }, "\(openDescriptors()) instead of \(before)")
            #expect(eventually { children().isEmpty }, "\(children())")
        }
    }

    @Test func `programs get the limit of descriptors that Alight was started with`() async {
        await #expect(processExitsWith: .success) {
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            limit.rlim_cur = min(3000, limit.rlim_max)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let launcher = try makeLauncher()
            let ended = launcher.run(shell("ulimit -n"), stop: StopSignal())
            #expect(ended.text == "\(limit.rlim_cur)\n")
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            #expect(limit.rlim_cur <= 1024)
        }
    }

    @Test func `what the runner ignores, a program does not`() async {
        await #expect(processExitsWith: .success) {
            signal(SIGHUP, SIG_IGN)
            signal(SIGCHLD, SIG_DFL)
            signal(SIGUSR1, SIG_IGN)
            let ended = try makeLauncher().run(shell("grep SigIgn /proc/self/status"), stop: StopSignal())
            #expect(ended.text == "SigIgn:\t0000000000000000\n")
        }
    }
}

/// The open descriptors, without the one that lists them.
private func openDescriptors() -> Int {
    ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []).count
}

/// The children of all threads, zombies too.
private func children() -> [String] {
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    return threads.flatMap { thread -> [String] in
        let list = (try? String(contentsOfFile: "/proc/self/task/\(thread)/children", encoding: .utf8)) ?? ""
        return list.split(separator: " ").map(String.init)
    }
}
