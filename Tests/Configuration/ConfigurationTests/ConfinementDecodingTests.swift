import Configuration
import Glibc
import Rules
import System
import Testing
import TestKit

struct ConfinementDecodingTests {
    /// Loads rules as if on a machine with these properties.
    private func load(_ text: String, _ change: (inout RuleLoader.Machine) -> Void = { _ in }) -> LoadedRules {
        var machine = RuleLoader.Machine()
        change(&machine)
        return withTempTree { tree in
            TestFile.write(tree.path("rules.yaml"), text)
            var hostEnvironment = RuleLoader.Environment(
                home: "/home/ada", environment: { _ in nil }, currentDirectory: tree.root)
            hostEnvironment.machine = machine
            return RuleLoader(catalog: FakeCatalog(), hostEnvironment: hostEnvironment).load(["rules.yaml"])
        }
    }

    private func loadRule(_ key: String, _ change: (inout RuleLoader.Machine) -> Void = { _ in }) -> LoadedRules {
        load("rules:\n  - path: /in/*\n    \(key)\n    action: log\n", change)
    }

    @Test func `all keys are read, and those of a rule replace the defaults`() throws {
        let loaded = load(
            """
            defaults:
              umask: "022"
              nice: 10
              ionice: best-effort:7
              limits: { cpu: 1m30s, memory: 512 MiB, files: 256, processes: 50, file_size: 1 GiB }
              run_as: nobody
              sandbox: { read: [~/a], write: ["out/${stem}"], network: no, required: no }
            rules:
              - { name: a, path: /in/*, action: log }
              - { name: b, path: /in/*, umask: "0077", nice: -3, limits: false, run_as: false, sandbox: false, action: log }
              - { name: c, path: /in/*, limits: { cpu: 5s }, sandbox: { network: false }, action: log }
            """)
        #expect(DiagnosticText.text(of: loaded.diagnostics) == "")
        let rules = loaded.ruleset.rules.map(\.confinement)
        try #require(rules.count == 3)
        #expect(rules[0].umask == 0o022 && rules[0].nice == 10 && rules[0].ioPriority == .bestEffort(7))
        #expect(rules[0].limits?.cpu == .seconds(90) && rules[0].limits?.memory == 512 << 20)
        #expect(rules[0].limits?.files == 256 && rules[0].limits?.processes == 50)
        #expect(rules[0].limits?.fileSize == 1 << 30)
        #expect(rules[0].user?.name == "nobody" && rules[0].user?.uid == 65534)
        #expect(rules[0].sandbox?.read == [Template(literal: "/home/ada/a")])
        #expect(rules[0].sandbox?.allowsNetwork == false && rules[0].sandbox?.isRequired == false)
        #expect(rules[1].umask == 0o077 && rules[1].nice == -3 && rules[1].limits == nil)
        #expect(rules[1].user == nil && rules[1].sandbox == nil)
        #expect(rules[2].limits?.cpu == .seconds(5) && rules[2].limits?.memory == nil)
        #expect(rules[2].sandbox?.confinesFiles == false && rules[2].user?.uid == 65534)
    }

    @Test func `a user has groups and a home, and an unknown user number needs a group`() throws {
        @Sendable func account(_ name: String, _ uid: UInt32) -> Accounts.Account {
            (name, uid, 100, "/home/ada")
        }
        func user(_ text: String) throws -> ProgramUser {
            let loaded = loadRule("run_as: \(text)") {
                $0.accounts.named = { $0 == "ada" || $0 == "42" ? account($0, $0 == "42" ? 7 : 1000) : nil }
                $0.accounts.numbered = { $0 == 1000 ? account("ada", 1000) : nil }
                $0.accounts.groups = { _, gid in [gid, 5] }
            }
            return try #require(loaded.ruleset.rules.first?.confinement.user, "\(loaded.diagnostics)")
        }
        let ada = ProgramUser(text: "ada", name: "ada", uid: 1000, gid: 100, groups: [100, 5], home: "/home/ada")
        #expect(try user("ada") == ada)
        var numbered = ada
        numbered.text = "1000:0"
        (numbered.gid, numbered.groups) = (0, [0, 5])
        #expect(try user("1000:0") == numbered)
        #expect(try user("ada:root").gid == 0)
        // As in chown(1), a name takes precedence over a number.
        #expect(try user("42").uid == 7)
        #expect(
            try user("4711:8")
                == ProgramUser(text: "4711:8", name: nil, uid: 4711, gid: 8, groups: [8], home: "/"))
    }

    @Test(arguments: [
        ("run_as: nobody", "3:13: error: 'run_as' needs root"),
        ("nice: -1", "3:11: error: 'nice' can't be -1 here"),
        ("ionice: realtime:1", "3:13: error: 'ionice' can't be 'realtime:1' here"),
    ])
    func `a setting that needs root is an error for other users`(key: String, message: String) {
        let loaded = loadRule(key) {
            $0.isRoot = false
            $0.leastNice = 0
        }
        #expect(DiagnosticText.text(of: loaded.diagnostics).contains(message), "\(loaded.diagnostics)")
        #expect(loaded.hasErrors && !loadRule(key).hasErrors)
    }

    @Test func `a kernel without sandbox support is an error, or a warning if the rule allows it`() {
        for (errno, words) in [(ENOSYS, "the kernel was built without it"), (EOPNOTSUPP, "it is disabled")] {
            let loaded = loadRule("sandbox: { write: [/out] }") { $0.landlock = -errno }
            let text = DiagnosticText.text(of: loaded.diagnostics)
            #expect(loaded.hasErrors)
            #expect(
                text.contains("3:14: error: this kernel can't restrict programs to the files of 'sandbox'"), "\(text)")
            #expect(text.contains("Landlock ABI 0: \(words)") && text.contains("or add 'required: no'"))
        }
        let lenient = loadRule("sandbox: { write: [/out], required: no }") { $0.landlock = -ENOSYS }
        #expect(!lenient.hasErrors && lenient.ruleset.rules.count == 1)
        #expect(DiagnosticText.text(of: lenient.diagnostics).contains("programs run without it"))
        // Restricting the network does not need Landlock.
        #expect(loadRule("sandbox: { network: no }") { $0.landlock = -ENOSYS }.diagnostics.isEmpty)
        let network = loadRule("sandbox: { network: no }") { $0.canShutOffNetwork = false }
        #expect(DiagnosticText.text(of: network.diagnostics).contains("can't block network access for programs"))
        #expect(network.hasErrors)
    }

    @Test func `an invalid boolean is reported with the allowed values`() {
        let maybe = DiagnosticText.text(of: loadRule("sandbox: { network: maybe }").diagnostics)
        #expect(maybe.contains("'network' must be yes or no, not 'maybe'"), "\(maybe)")
        let quoted = DiagnosticText.text(of: loadRule("sandbox: { network: 'no' }").diagnostics)
        #expect(quoted.contains("write 'no' without quotes"), "\(quoted)")
        for word in ["no", "false"] { #expect(!loadRule("sandbox: { network: \(word) }").hasErrors) }
    }

    @Test func `an old kernel leads to a warning`() {
        let loaded = loadRule("sandbox: { write: [/out] }") { $0.landlock = 2 }
        #expect(!loaded.hasErrors)
        #expect(DiagnosticText.text(of: loaded.diagnostics).contains("with the Landlock ABI 2 of this kernel"))
        #expect(loadRule("sandbox: { write: [/out] }") { $0.landlock = 3 }.diagnostics.isEmpty)
    }

    @Test func `limits without effect lead to a warning`() {
        let text = DiagnosticText.text(of: loadRule("limits: { processes: 5 }").diagnostics)
        #expect(text.contains("warning: 'processes' has no effect on programs that run as root"))
        #expect(loadRule("limits: { processes: 5 }\n    run_as: nobody").diagnostics.isEmpty)
        #expect(loadRule("limits: { processes: 5 }") { $0.isRoot = false }.diagnostics.isEmpty)
        #expect(!loadRule("limits: { processes: 5 }\n    run_as: root").diagnostics.isEmpty)
    }

    @Test func `a sandbox path can refer only to existing groups of a regular expression`() {
        let loaded = loadRule("sandbox: { write: [\"/out/${match.year}\"] }")
        #expect(loaded.hasErrors)
        #expect(
            !loadRule("where: { regex: '^(?<year>[0-9]+)' }\n    sandbox: { write: [\"/out/${match.year}\"] }")
                .hasErrors)
    }
}
