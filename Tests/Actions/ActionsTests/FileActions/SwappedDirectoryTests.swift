import ActionAPI
import FileEvents
import Glibc
import Programs
import Rules
import System
import Testing
import TestKit

/// A user who swaps a directory for a link cannot lead a program elsewhere.
@Suite(.enabled(if: geteuid() == 0, "only root has rights that others could use"))
struct SwappedDirectoryTests {
    enum Kind: CaseIterable {
        /// A path that the rule names.
        case literal
        /// A path that contains the name of a file.
        case placeholder
        /// The file that the program runs for.
        case event
        case workingDirectory
        /// The working directory of a program that runs as a user other than the one who swaps.
        case workingDirectoryOfUser

        var isSandbox: Bool { self != .workingDirectory && self != .workingDirectoryOfUser }
    }

    static let daemon = ProgramUser(text: "daemon", name: "daemon", uid: 1, gid: 1, groups: [1], home: "/nonexistent")

    @Test(.timeLimit(.minutes(5)), arguments: Kind.allCases)
    func `a program cannot access the target of the link`(_ kind: Kind) throws {
        guard !kind.isSandbox || SandboxSupport.landlock > 0 else { return }
        let stage = try Stage()
        let tree = stage.directory.path
        for directory in [tree, try stage.directory.directory("drop"), try stage.directory.directory("drop/out")] {
            #expect(chmod(directory.description, 0o755) == 0)
            if directory != tree { UntrustedLinkTests.own(directory) }
        }
        try stage.directory.directory("drop/out/sub")
        try stage.directory.write("drop/out/sub/file", "own\n", mode: 0o644)
        let outside = try stage.directory.directory("private", mode: 0o700)
        try stage.directory.directory("private/sub")
        try stage.directory.write("private/sub/file", "private\n", mode: 0o644)
        if kind == .workingDirectoryOfUser { #expect(chown(outside.description, 1, 1) == 0) }
        let child = RunningProgram.swapping([tree.appending("drop/out")], for: outside, in: tree, isOrdinary: true)
        defer {
            child.signal(SIGKILL)
            _ = child.wait()
        }
        let script = kind.isSandbox ? "cat '\(tree)/drop/out/sub/file' '\(tree)/private/sub/file'" : "cat file"
        var (own, others) = (0, 0)
        func round() {
            let outcome = stage.run(.shell(script)) { Self.prepare(&$0, kind, in: tree) }
            #expect(!outcome.log.contains("private\n"))
            if outcome.log.contains("own\n") { own += 1 } else { others += 1 }
        }
        for _ in 0..<200 { round() }
        let hasMet = Deadline.wait {
            if own > 0, others > 0 { return true }
            round()
            return false
        }
        #expect(hasMet, "\(own) \(others) \(child.error)")
    }

    private static func prepare(_ invocation: inout Invocation, _ kind: Kind, in tree: PathBytes) {
        invocation.baseDirectory = tree
        invocation.job.event = Stage.event(path: tree.appending("in/out"))
        if kind.isSandbox {
            invocation.confinement.sandbox = Sandbox()
            invocation.confinement.sandbox?.read = []
        }
        switch kind {
        case .literal: invocation.confinement.sandbox?.read = [Template(literal: "drop/out/sub")]
        case .placeholder:
            invocation.confinement.sandbox?.read = [Template("drop/${name}/sub")].compactMap(\.self)
        case .event:
            invocation.job.event = Stage.event(path: tree.appending("drop/out/sub/file"))
            invocation.job.event.root = tree.appending("drop")
        case .workingDirectory, .workingDirectoryOfUser:
            invocation.directory = ProgramPath(
                tree.appending("drop/out/sub"), beneath: tree.appending("drop"))
            if kind == .workingDirectoryOfUser { invocation.confinement.user = daemon }
        }
    }
}
