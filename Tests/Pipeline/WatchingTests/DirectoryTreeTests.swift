import System
import Testing
import TestKit

@testable import Watching

struct DirectoryTreeTests {

    @Test(arguments: 0..<20) func `a tree after many changes agrees with a plain table`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var tree = DirectoryTree()
        var directories: [PathBytes: DirectoryTree.ID] = [:]
        var watches: [PathBytes: Int32] = [:]
        let top = tree.addRoot("/top")
        directories["/top"] = top
        for _ in 0..<3_000 {
            guard let (path, directory) = directories.randomElement(using: &random) else { return }
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                let name = Array("n\(Int.random(in: 0..<30, using: &random))".utf8)
                let child = name.withUnsafeBytes { tree.child(of: directory, named: $0) }
                #expect(child == directories[path.appending(name)])
                if child == nil {
                    directories[path.appending(name)] = name.withUnsafeBytes { tree.enter(directory, named: $0) }
                }
            case 5..<8:
                let watch = Int32.random(in: 1..<200, using: &random)
                let old = watches[path]
                let freed = tree.setWatch(watch, of: directory)
                watches[path] = watch
                let isOldFree = old != nil && old != watch && !watches.values.contains { $0 == old }
                #expect(freed == (isOldFree ? old : nil))
            default:
                let keeps = path == "/top" || Bool.random(using: &random)
                // The top is emptied rarely, so that the tree can grow.
                if path == "/top", Int.random(in: 0..<20, using: &random) > 0 { continue }
                let gone = directories.keys.filter { $0.isInside(path) && !(keeps && $0 == path) }
                let candidates = Set(gone.compactMap { watches[$0] })
                for each in gone {
                    directories[each] = nil
                    watches[each] = nil
                }
                let freed = tree.forget(directory, keepingItself: keeps).watches
                #expect(Set(freed) == candidates.subtracting(watches.values))
            }
        }
        #expect(tree.count == directories.count)
        #expect(tree.watchCount == Set(watches.values).count)
        for (path, directory) in directories {
            let isThere = tree.contains(directory)
            #expect(isThere)
            #expect(tree.path(of: directory) == path)
            #expect(tree.watch(of: directory) == watches[path])
            if let watch = watches[path] {
                let sharing = tree.directories(of: watch)
                #expect(sharing.contains(directory))
                #expect(tree.onlyDirectory(of: watch) == (sharing.count == 1 ? directory : nil))
            }
        }
    }

    @Test func `paths below the root directory of the file system have one slash`() {
        var tree = DirectoryTree()
        let top = tree.addRoot("/")
        let child = Array("a".utf8).withUnsafeBytes { tree.enter(top, named: $0) }
        let inner = Array("b".utf8).withUnsafeBytes { tree.enter(child, named: $0) }
        #expect(tree.path(of: top) == "/")
        #expect(tree.path(of: child) == "/a")
        #expect(tree.path(of: inner) == "/a/b")
    }

    @Test func `a listing returns the directories that it did not find`() {
        var tree = DirectoryTree()
        let top = tree.addRoot("/top")
        let children = ["a", "b"].map { name in Array(name.utf8).withUnsafeBytes { tree.enter(top, named: $0) } }
        tree.markUnseen(below: top)
        tree.insert(.seen, of: children[0])
        #expect(tree.unseen(below: top) == [children[1]])
    }
}
