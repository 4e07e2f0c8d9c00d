import ActionAPI
import FileActions
import Glibc
import JSON
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// The paths that content handlers may write to.
struct ContentLocationTests {
    static let names = ["archive", "extract"]

    private func rule(_ name: String, _ root: PathBytes) -> ContentRule {
        let trash = Trash(home: nil)
        let rule = ContentRule(
            root, name == "archive" ? ArchiveHandler(trash: trash) : ExtractHandler(trash: trash))
        TestFile.write(rule.path("a"), "text")
        let made = call("/bin/tar", ["--create", "--file", "in/x.zip", "-C", "in", "a"], in: root)
        #expect(made.status == 0)
        return rule
    }

    @Test(arguments: names)
    func `neither dots after a placeholder nor a link lead out of the directory`(name: String) {
        withTempTree { tree in
            let rule = rule(name, tree.root.appending("deep"))
            TestFile.makeDirectory(tree.path("away"))
            _ = rule.path("link").withCString { symlink("../../away", $0) }
            for to in ["out/${stem}/../../../away/y.zip", "in/link/y.zip", "in/../../away/${stem}/../y.zip"] {
                let outcome = rule.run("x.zip", ["to": .string(to)])
                // The last one names the directory itself.
                guard !to.hasPrefix("in/..") else {
                    #expect(outcome.code != "outside", "\(outcome.message)")
                    continue
                }
                #expect(outcome.result == .failed, "\(to): \(outcome.message)")
                #expect(outcome.code == "outside", "\(to): \(outcome.message)")
                #expect(TestFile.names(in: tree.path("away")).isEmpty)
            }
            #expect(!TestFile.exists(tree.path("deep/out")))
        }
    }

    @Test(arguments: names)
    func `with 'allow', no other directory is written to`(name: String) {
        withTempTree { tree in
            let rule = rule(name, tree.root)
            let refused = rule.run("x.zip", ["to": "out/y.zip", "allow": ["other"]])
            #expect(refused.code == "outside", "\(refused.message)")
            #expect(!TestFile.exists(tree.path("out")))
            let taken = rule.run("x.zip", ["to": "other/sub/y.zip", "allow": ["other"]])
            #expect(taken.code != "outside", "\(taken.message)")
            #expect(TestFile.exists(tree.path("other/sub")))
        }
    }

    /// The handler receives the file that settled, not a link in its place.
    @Test func `checksum and tag ignore a link that replaced the file`() {
        withTempTree { tree in
            TestFile.write(tree.path("outside"), "secret")
            let handlers: [(any Handler, JSONValue)] = [
                (ChecksumHandler(), ["write": "sums"]), (TagHandler(), ["set": ["user.a": "1"]]),
            ]
            for (handler, with) in handlers {
                let rule = ContentRule(tree.root, handler)
                TestFile.write(rule.path("a"), "text")
                var invocation = rule.invocation(rule.path("a"), with)
                invocation.expectsSettled = true
                _ = rule.path("a").withCString { unlink($0) }
                _ = rule.path("a").withCString { symlink("../outside", $0) }
                let outcome = handler.run(invocation)
                #expect(outcome.result == .notReady, "\(outcome.message)")
                _ = rule.path("a").withCString { unlink($0) }
            }
            #expect(listing(tree.root) == ["in/", "outside: secret"])
        }
    }
}
