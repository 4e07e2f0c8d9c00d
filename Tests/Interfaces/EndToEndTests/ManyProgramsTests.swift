import Foundation
import Glibc
import System
import Testing
import TestKit

/// A thousand programs at the same time.
struct ManyProgramsTests {
    private static let count = 1000
    /// The memory for each program in KiB; without optimization, asynchronous functions store much more.
    #if DEBUG
    private static let mostMemory = 60
    #else
    private static let mostMemory = 40
    #endif

    private static func count(of directory: String, _ program: RunningProgram) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(program.pid)/\(directory)").count) ?? 0
    }

    /// Returns the memory of the program that no other process uses, in KiB.
    private static func ownMemory(_ program: RunningProgram) -> Int {
        let text = (try? String(contentsOfFile: "/proc/\(program.pid)/smaps_rollup", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").filter { $0.hasPrefix("Private_") }
            .reduce(0) { $0 + (Int($1.split(separator: " ")[1]) ?? 0) }
    }

    private static func started(_ log: PathBytes) -> Int { TestFile.text(log)?.count ?? 0 }

    private static func ended(_ program: RunningProgram) -> Int { program.lines.count { $0.contains("hold") } }

    @Test func `a thousand programs at once take four descriptors each, little memory, and no threads`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("started"), "")
            #expect(mkfifo(tree.path("fifo").description, 0o600) == 0)
            // Each program reads one byte of the pipe.
            TestFile.write(
                tree.path("rules.yaml"),
                """
                rules:
                  - name: hold
                    path: in/*
                    settle: 0
                    concurrency: 1024
                    action: { exec: [/bin/sh, -c, "echo >>started; exec dd if=fifo of=/dev/null bs=1 count=1 2>/dev/null"] }
                """)
            let program = RunningProgram.alight(
                ["run", "rules.yaml", "--jobs", "\(Self.count)", "--journal", ":memory:"], in: tree.root)
            #expect(program.waitUntilReady(), "\(program.error)")
            let pipe = open(tree.path("fifo").description, O_RDWR | O_CLOEXEC)
            defer { close(pipe) }
            let log = tree.path("started")
            // The first program also starts what all share.
            TestFile.write(tree.path("in/0"), "x")
            #expect(Deadline.wait { Self.started(log) == 1 }, "\(program.error)")
            let before = (threads: Self.count(of: "task", program), memory: Self.ownMemory(program))
            for number in 1..<Self.count { TestFile.write(tree.path("in/\(number)"), "x") }
            #expect(
                Deadline.wait(within: .seconds(240)) { Self.started(log) == Self.count },
                "\(Self.started(log))\(program.error)")
            let threads = Self.count(of: "task", program)
            #expect(threads <= before.threads + 32, "\(threads) threads, \(before.threads) before")
            let descriptors = Self.count(of: "fd", program)
            #expect(descriptors <= 4 * Self.count + 100, "\(descriptors)")
            let memory = (Self.ownMemory(program) - before.memory) / Self.count
            #expect(memory < Self.mostMemory, "\(memory) KiB for each program")
            let bytes = [UInt8](repeating: 0x78, count: Self.count)
            #expect(write(pipe, bytes, bytes.count) == bytes.count)
            #expect(Deadline.wait { Self.ended(program) == Self.count }, "\(Self.ended(program))\(program.error)")
            #expect(program.lines.allSatisfy { !$0.contains("failed") })
            #expect(program.stop() == 0, "\(program.error)")
        }
    }
}
