import FileEvents
import Foundation
import System
import Testing
import TestKit

@testable import Settling

struct PartialFileTests {
    private static func name(_ entry: PartialFile.Companion, of name: String) -> String {
        String(decoding: entry.prefix + Array(name.utf8) + entry.suffix, as: UTF8.self)
    }

    @Test func `names of companions are recognized, and no others`() {
        for entry in PartialFile.companions {
            #expect(PartialFile.isCompanion(Array(Self.name(entry, of: "a.b").utf8)))
        }
        for name in ["", "a", "part", "a.pdf", "a.tmp", ".syncthing.a", "a#", "a.parts"] {
            #expect(!PartialFile.isCompanion(Array(name.utf8)))
        }
    }

    private func isFinished(_ path: PathBytes, _ policy: SettlePolicy) -> Bool {
        if case .finished = SettledCheck.check(
            DiskProbe.Location(path), in: .kernel, at: DiskProbe.now(), policy: policy, isPolled: false, sample: nil,
            round: 0, waited: .zero)
        {
            true
        } else {
            false
        }
    }

    @Test(arguments: PartialFile.companions.map { name($0, of: "report.pdf") })
    func `an empty file waits while its companion exists`(companion: String) {
        withTempTree { tree in
            let path = tree.path("report.pdf")
            TestFile.write(path, "")
            #expect(Deadline.wait { isFinished(path, SettlePolicy()) })
            TestFile.write(tree.path(companion), "half")
            #expect(PartialFile.companion(of: DiskProbe.Location(path), size: 0, in: .kernel) == tree.path(companion))
            #expect(!isFinished(path, SettlePolicy()))
            #expect(isFinished(path, SettlePolicy(partial: .ignore)))
            TestFile.removeTree(tree.path(companion))
            #expect(Deadline.wait { isFinished(path, SettlePolicy()) })
        }
    }

    @Test(arguments: PartialFile.companions)
    func `a file with content waits for companions of programs that write to the final name`(
        entry: PartialFile.Companion
    ) {
        withTempTree { tree in
            let path = tree.path("disk image.iso")
            TestFile.write(path, "the former version")
            TestFile.write(tree.path(Self.name(entry, of: "disk image.iso")), "half")
            #expect(
                (PartialFile.companion(of: DiskProbe.Location(path), size: 18, in: .kernel) != nil) == !entry
                    .isForEmptyFilesOnly)
        }
    }

    @Test func `the documentation lists the same companions`() throws {
        let text = try String(contentsOfFile: "\(Places.checkout)/docs/events.md", encoding: .utf8)
        let rows = PartialFile.companions.map { entry in
            let files = entry.isForEmptyFilesOnly ? "an empty file" : "any file"
            return "| `\(Self.name(entry, of: "NAME"))` | \(files) | \(entry.programs) |"
        }
        #expect(text.contains(rows.joined(separator: "\n")))
    }
}
