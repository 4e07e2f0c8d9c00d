import FileEvents
import System
import Testing

@testable import Watching

struct RecentFilesTests {
    private func slot(_ name: String, _ directory: DirectoryTree.ID, _ recent: RecentFiles) -> RecentFiles.Slot {
        Array(name.utf8).withUnsafeBytes { recent.slot(of: $0, in: directory) }
    }

    private func hint(_ name: String, _ directory: DirectoryTree.ID, _ recent: RecentFiles, _ hints: [Hint]) -> Int? {
        Array(name.utf8).withUnsafeBytes {
            recent.hint(at: recent.slot(of: $0, in: directory), named: $0, among: hints)
        }
    }

    @Test func `a file is identified by its directory and whole name, for one turn`() {
        var tree = DirectoryTree()
        let (one, other) = (tree.addRoot("/one"), tree.addRoot("/other"))
        let hints = ["/one/a", "/one/aa"].map { Hint(path: $0, signs: .written, origin: .live) }
        var recent = RecentFiles()
        recent.set(0, at: slot("a", one, recent))
        recent.set(1, at: slot("aa", one, recent))
        #expect(hint("a", one, recent, hints) == 0)
        #expect(hint("aa", one, recent, hints) == 1)
        #expect(hint("aaa", one, recent, hints) == nil)
        #expect(hint("a", other, recent, hints) == nil)
        recent.removeAll()
        #expect(hint("a", one, recent, hints) == nil)
    }

    @Test func `of several files with the same position, the last one is known`() {
        var tree = DirectoryTree()
        let directory = tree.addRoot("/in")
        var recent = RecentFiles()
        var hints: [Hint] = []
        for index in 0..<20_000 {
            recent.set(hints.count, at: slot("f\(index)", directory, recent))
            hints.append(Hint(path: PathBytes("/in/f\(index)"), signs: .written, origin: .live))
        }
        let known = (0..<20_000).filter { index in
            let found = hint("f\(index)", directory, recent, hints)
            #expect(found == nil || found == index)
            return found != nil
        }
        #expect(known.contains(19_999))
        #expect(known.count <= 4096)
    }
}
