import Glibc
import Rules
import System
import Testing
import TestKit

@testable import Configuration

struct RuleLoaderTests {
    private let good = "rules: [{ path: in/*, action: log }]\n"

    /// Compares all diagnostics with a recorded text.
    private func expect(_ loaded: LoadedRules, _ name: String) {
        let text = DiagnosticText.text(of: loaded.diagnostics)
        #expect(text == Golden.text("Files/\(name)", recording: text))
    }

    // MARK: - Directories

    @Test func `the rules files of a directory are read in the order of their names, and no others`() {
        withTempTree { tree in
            for name in [
                "b.yaml", "a.yml", "C.yaml", "é.yaml", ".hidden.yaml", "x.yaml~", "x.json", "below/z.yaml", "yaml",
            ] {
                TestFile.write(tree.path("rules/\(name)"), good.replacing("in/*", with: "\(name)/*"))
            }
            for path in ["rules", "rules/", "./rules", tree.path("rules").description] {
                let loaded = makeLoader(in: tree.root).load([path])
                #expect(loaded.diagnostics.isEmpty)
                #expect(loaded.ruleset.rules.map(\.name) == ["C.yaml/*", "a.yml/*", "b.yaml/*", "é.yaml/*"])
                #expect(loaded.files == ["C.yaml", "a.yml", "b.yaml", "é.yaml"].map { tree.path("rules/\($0)") })
            }
        }
    }

    @Test func `locations name the file as the user did`() {
        withTempTree { tree in
            TestFile.write(tree.path("rules/a.yaml"), good)
            let loader = makeLoader(in: tree.root)
            #expect(loader.load(["rules"]).ruleset.rules.map(\.location.file) == ["rules/a.yaml"])
            #expect(loader.load(["rules/"]).ruleset.rules.map(\.location.file) == ["rules/a.yaml"])
            #expect(loader.load(["./rules/a.yaml"]).ruleset.rules.map(\.location.file) == ["./rules/a.yaml"])
        }
    }

    @Test func `a file named twice is read once`() {
        withTempTree { tree in
            TestFile.write(tree.path("rules/a.yaml"), good)
            let loaded = makeLoader(in: tree.root).load(["rules/a.yaml", "rules", "rules/../rules/./a.yaml"])
            #expect(loaded.diagnostics.isEmpty)
            #expect(loaded.ruleset.rules.count == 1)
        }
    }

    @Test func `a link to a file and a file of any name are read`() {
        withTempTree { tree in
            TestFile.write(tree.path("conf"), good)
            TestFile.makeDirectory(tree.path("rules"))
            tree.path("rules/l.yaml").withCString { _ = symlink("../conf", $0) }
            let loaded = makeLoader(in: tree.root).load(["conf", "rules"])
            #expect(loaded.diagnostics.isEmpty)
            #expect(loaded.ruleset.rules.map(\.name) == ["in/*", "rules/in/*"].map { tree.path($0).description })
        }
    }

    @Test func `without paths no rules are loaded`() {
        let loaded = makeLoader(in: "/").load([String]())
        #expect(loaded.diagnostics.isEmpty)
        #expect(loaded.ruleset.rules.isEmpty)
    }

    // MARK: - File errors

    @Test func `all errors in all files are reported at once`() {
        withTempTree { tree in
            TestFile.write(tree.path("rules/a.yaml"), "rules:\n  - name: photos\n    path: in/*\n    action: lgo\n")
            TestFile.write(tree.path("rules/b.yaml"), "rules:\n\t- name: photos\n")
            TestFile.write(
                tree.path("rules/c.yaml"), "rules:\n  - name: photos\n    path: in/*\n    action: log\n    settle: 5\n")
            TestFile.write(tree.path("rules/d.yaml"), [])
            expect(makeLoader(in: tree.root).load(["rules", "missing.yaml", "rules"]), "several-files")
        }
    }

    @Test func `a name must be unique across all files`() {
        withTempTree { tree in
            TestFile.write(tree.path("a.yaml"), "rules:\n  - { path: in/*, action: log, name: photos }\n")
            TestFile.write(
                tree.path("sub/a.yaml"), "rules:\n  - { path: in/*, action: log, name: photos, enabled: false }\n")
            TestFile.write(tree.path("c/photos.yaml"), good)
            TestFile.write(tree.path("c/scans.yaml"), good.replacing("in/*", with: "../c/./in/*"))
            TestFile.write(tree.path("d/photos.yaml"), good)
            expect(makeLoader(in: tree.root).load(["a.yaml", "sub", "c", "d"]), "duplicate-names")
        }
    }

    @Test func `a missing file is an error`() {
        withTempTree { tree in
            TestFile.write(tree.path("rules/photos.yaml"), good)
            expect(
                makeLoader(in: tree.root).load(["rules/fotos.yaml", "rulse", "a.yaml", "rules/photos.yaml/x", ""]),
                "missing")
        }
    }

    @Test func `directories without rules and directories with a file extension are loaded`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("empty"))
            TestFile.write(tree.path("other/readme.txt"), "x")
            TestFile.makeDirectory(tree.path("mixed/folder.yaml"))
            TestFile.write(tree.path("mixed/a.yaml"), good)
            TestFile.write(tree.path("named.yaml/b.yaml"), good)
            let loaded = makeLoader(in: tree.root).load(["empty", "other", "mixed", "named.yaml"])
            let directories = ["mixed", "named.yaml"]
            #expect(loaded.ruleset.rules.map(\.name) == directories.map { tree.path("\($0)/in/*").description })
            expect(loaded, "folders")
        }
    }

    @Test(.timeLimit(.minutes(15)))
    func `pipes, sockets and devices are refused without blocking`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("rules"))
            tree.path("rules/fifo.yaml").withCString { _ = mkfifo($0, 0o644) }
            tree.path("rules/null.yaml").withCString { _ = symlink("/dev/null", $0) }
            tree.path("rules/gone.yaml").withCString { _ = symlink("nowhere", $0) }
            tree.path("rules/loop.yaml").withCString { _ = symlink("loop.yaml", $0) }
            expect(makeLoader(in: tree.root).load(["rules", "rules/fifo.yaml"]), "not-files")
        }
    }

    @Test func `a file that cannot be read is an error`() {
        // Reading this file fails for every user. Permissions do not stop root.
        expect(makeLoader(in: "/").load(["/proc/self/mem"]), "unreadable")
    }

    @Test(.enabled(if: geteuid() != 0))
    func `a file without read permission is an error`() {
        withTempTree { tree in
            TestFile.write(tree.path("a.yaml"), Array(good.utf8), mode: 0)
            let loaded = makeLoader(in: tree.root).load(["a.yaml"])
            #expect(loaded.diagnostics.map(\.message) == ["cannot read the file: permission denied"])
        }
    }

    @Test func `a large file is refused without reading it`() {
        withTempTree { tree in
            TestFile.write(tree.path("large.yaml"), good)
            tree.path("large.yaml").withCString { _ = truncate($0, 50_000_000) }
            expect(makeLoader(in: tree.root).load(["large.yaml"]), "too-large")
        }
    }

    @Test func `a file of exactly the maximum size is read`() {
        withTempTree { tree in
            let rest = String(repeating: "#", count: TextCheck.maximumSize - good.utf8.count)
            TestFile.write(tree.path("a.yaml"), good + rest)
            #expect(!makeLoader(in: tree.root).load(["a.yaml"]).hasErrors)
            TestFile.write(tree.path("a.yaml"), good + rest + "#")
            #expect(makeLoader(in: tree.root).load(["a.yaml"]).hasErrors)
        }
    }

    @Test func `a large file with one long line and many errors is checked quickly`() {
        let rules = (0..<20_000).map { "{ name: é\($0), path: /in/*, action: lgo }" }.joined(separator: ", ")
        let clock = ContinuousClock()
        let start = clock.now
        let loaded = load("rules: [\(rules)]")
        #expect(clock.now - start < .seconds(180))
        #expect(loaded.diagnostics.count == 101)
        #expect(loaded.diagnostics.last?.message == "19900 more problems are not shown")
    }

    static let heavy: [(what: String, text: String)] = {
        func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }
        let rule = "rules:\n  - path: /in/*\n    action: "
        return [
            ("blanks in a list", "a: [" + repeated(" ", 1_000_000) + "${x}"),
            ("unknown placeholders", rule + "{ use: copy, with: { to: \"" + repeated("${x}", 100_000) + "\" } }"),
            ("unclosed placeholders", rule + "{ use: copy, with: { to: \"" + repeated("${x", 100_000) + "\" } }"),
            ("placeholders in a shell", rule + "{ shell: \"" + repeated("${path}", 100_000) + "\" }"),
            ("placeholders in a path", "rules: [{ path: '" + repeated("${env:INBOX}", 100_000) + "', action: log }]"),
            ("braces in a path", "rules: [{ path: '" + repeated("{a,b}", 3_000) + "', action: log }]"),
            ("unknown parameters", rule + "{ use: log, with: {" + (0..<20_000).map { "k\($0): 1, " }.joined() + "} }"),
            ("unknown keys", rule + "log\n" + (0..<20_000).map { "    k\($0): 1\n" }.joined()),
            ("duplicate keys", "rules:\n" + repeated("  - { path: /in/*, path: /in/*, action: log }\n", 5_000)),
            ("unknown tags", "rules: [" + repeated("!a x, ", 100_000) + "]"),
            ("quotes", "rules: [" + repeated("' \" ", 100_000) + "]"),
            ("exclusions", "rules: [{ path: /in/*, action: log, exclude: [" + repeated("a, ", 50_000) + "] }]"),
        ]
    }()

    @Test(arguments: heavy.indices)
    func `time is proportional to the length of the file`(index: Int) {
        let clock = ContinuousClock()
        let start = clock.now
        _ = load(Self.heavy[index].text)
        #expect(clock.now - start < .seconds(180), "\(Self.heavy[index].what)")
    }

    @Test func `ten thousand valid rules load`() {
        let rules = (0..<10_000).map { "  - { name: r\($0), path: /in/\($0)/*.jpg, action: log }\n" }.joined()
        #expect(load("rules:\n\(rules)").ruleset.rules.count == 10_000)
    }

    @Test func `an unset variable excludes only the rules that need it, if unset variables are allowed`() {
        withTempTree { tree in
            let needing = "  - { name: hook, path: /in/*, action: { use: log, with: { message: '${env:NONE}' } } }\n"
            let plain = "  - { name: plain, path: /in/*, action: log }\n"
            TestFile.write(tree.path("rules/a.yaml"), "rules:\n\(needing)\(plain)")
            TestFile.write(
                tree.path("rules/b.yaml"),
                "defaults: { exclude: ['${env:NONE}/*'] }\nrules:\n" + plain.replacing("plain", with: "shared"))
            var hostEnvironment = RuleLoader.Environment(
                home: nil, environment: { _ in nil }, currentDirectory: tree.root)
            func load() -> LoadedRules {
                RuleLoader(catalog: FakeCatalog(), hostEnvironment: hostEnvironment).load(["rules"])
            }
            #expect(load().hasErrors)
            hostEnvironment.allowsUnsetVariables = true
            let loaded = load()
            #expect(!loaded.hasErrors)
            #expect(loaded.diagnostics.map(\.severity) == [.warning, .warning])
            #expect(loaded.rulesInOrder.map(\.name) == ["plain"])
            #expect(loaded.refusedRules == ["hook", "shared"])
            TestFile.write(tree.path("rules/c.yaml"), "rules: [{ name: wrong, path: /in/*, action: log, nope: 1 }]\n")
            #expect(load().hasErrors)
        }
    }
}
