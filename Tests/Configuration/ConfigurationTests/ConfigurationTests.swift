import Rules
import System
import Testing
import TestKit

@testable import Configuration

struct ConfigurationTests {
    /// Loads a string as the file `config.yaml` of the directory `/etc/alight`.
    private static func load(
        _ text: String, distrust: @escaping @Sendable (PathBytes) -> Problem? = { _ in nil }
    ) -> (configuration: Configuration, diagnostics: [Diagnostic], directory: PathBytes) {
        withTempTree { tree in
            TestFile.write(tree.path("config.yaml"), text)
            let environment = ["STORE": "/srv/store"]
            var hostEnvironment = RuleLoader.Environment(
                home: "/home/ada", environment: { environment[$0] }, currentDirectory: tree.root)
            hostEnvironment.distrust = distrust
            var configuration = Configuration()
            let diagnostics = ConfigurationLoader(hostEnvironment: hostEnvironment).load(
                tree.path("config.yaml"), shown: "config.yaml", into: &configuration)
            return (configuration, diagnostics, tree.root)
        }
    }

    @Test func `every key is read, with its location`() {
        let (found, diagnostics, directory) = Self.load(
            """
            journal: jobs.db
            retention:
              period: 90d
              jobs: 5000
              size: 64 MiB
            listen: "[::1]:8080"
            control: ${env:STORE}/control.sock
            jobs: 3
            log: { format: journal, level: warning }
            plugins: ~/plugins
            rules: [rules, ../more/one.yaml, /etc/alight/rules]
            external_url: [https://Alight.example.org/, "http://[::1]:81"]

            """)
        #expect(diagnostics.isEmpty)
        func at(_ line: Int, _ column: Int = 1) -> SettingOrigin {
            .file(SourcePosition(file: "config.yaml", line: line, column: column))
        }
        #expect(found.journal == Setting(.file(directory.appending("jobs.db")), from: at(1)))
        #expect(found.retentionPeriod == Setting(.seconds(90 * 86_400), from: at(3, 3)))
        #expect(found.retentionJobs == Setting(5000, from: at(4, 3)))
        #expect(found.retentionSize == Setting(64 << 20, from: at(5, 3)))
        #expect(found.listen == Setting("[::1]:8080", from: at(6)))
        #expect(found.control == Setting("/srv/store/control.sock", from: at(7)))
        #expect(found.jobs == Setting(3, from: at(8)))
        #expect(found.logFormat == Setting(.journal, from: at(9, 8)))
        #expect(found.logLevel == Setting(.warning, from: at(9, 25)))
        #expect(found.plugins == Setting(["/home/ada/plugins"], from: at(10)))
        let more = directory.parent.appending("more/one.yaml")
        #expect(found.rules == Setting([directory.appending("rules"), more, "/etc/alight/rules"], from: at(11)))
        #expect(found.externalURLs == Setting(["https://alight.example.org", "http://[::1]:81"], from: at(12)))
    }

    @Test func `short forms are read`() {
        let (found, diagnostics, _) = Self.load(
            "journal: ':memory:'\nretention: 0\nlisten: false\ncontrol: false\nrules: ~/r.yaml\n")
        #expect(diagnostics.isEmpty)
        #expect(found.journal?.value == .memory)
        #expect(found.retentionPeriod?.value == .zero)
        #expect(found.listen?.value == .some(nil))
        #expect(found.control?.value == .some(nil))
        #expect(found.rules?.value == ["/home/ada/r.yaml"])
        #expect(found.jobs == nil)
    }

    @Test func `jobs is a number, or a mapping with a limit and an extra`() {
        let short = Self.load("jobs: 4\n").configuration
        #expect(short.jobs?.value == 4 && short.extraJobs == nil)
        let strict = Self.load("jobs: { limit: 4, extra: 0 }\n").configuration
        #expect(strict.jobs?.value == 4 && strict.extraJobs?.value == 0)
        let extra = Self.load("jobs: { extra: 2 }\n").configuration
        #expect(extra.jobs == nil && extra.extraJobs?.value == 2)
    }

    @Test(arguments: ["", "# nothing yet\n", "---\n"])
    func `a file without values sets nothing`(text: String) {
        let (found, diagnostics, _) = Self.load(text)
        #expect(diagnostics.isEmpty)
        #expect(found.jobs == nil)
    }

    struct Case: CustomTestStringConvertible {
        var text: String
        /// The line, the column and the message.
        var message: String
        var help: String?
        var testDescription: String { text }
    }

    static let cases = [
        Case(text: "job: 3", message: "1:1: unknown key 'job'", help: "write 'jobs'"),
        Case(
            text: "action: log", message: "1:1: unknown key 'action'",
            help: "it belongs in a rules file, see docs/rules.md"),
        Case(text: "jobs: 0", message: "1:7: 'jobs' must be a whole number from 1 to 4096, not '0'"),
        Case(
            text: "jobs: \"4\"", message: "1:7: 'jobs' must be a whole number from 1 to 4096, not '4'",
            help: "write it without quotes"),
        Case(
            text: "jobs: { limit: 4, extra: -1 }",
            message: "1:26: 'extra' must be a whole number from 0 to 4096, not '-1'"),
        Case(text: "jobs: { limt: 4 }", message: "1:9: unknown key 'limt'", help: "write 'limit'"),
        Case(text: "jobs: {}", message: "1:7: 'jobs' is empty"),
        Case(text: "retention: 3 weeks", message: "1:12: unknown unit 'weeks' in the duration '3 weeks'"),
        Case(
            text: "retention: { size: 5 KB }", message: "1:20: '5 KB' is less than 1 MiB", help: "write '1 MiB' or more"
        ),
        Case(text: "retention: {}", message: "1:12: 'retention' is empty"),
        Case(
            text: "listen: 8080", message: "1:9: '8080' is not an address with a port", help: "write '127.0.0.1:8080'"),
        Case(
            text: "listen: localhost:99999",
            message: "1:9: invalid port '99999' in 'localhost:99999', not from 1 to 65535"
        ),
        Case(text: "listen: localhost:0", message: "1:9: invalid port '0' in 'localhost:0', not from 1 to 65535"),
        Case(text: "listen: '*:80'", message: "1:9: invalid address '*'", help: "write '0.0.0.0:80', or '[::]:80'"),
        Case(text: "listen: '[localhost]:80'", message: "1:9: invalid address '[localhost]'", help: "write an address"),
        Case(text: "listen: ::1:80", message: "1:9: invalid address '::1'", help: "write '[::1]:80'"),
        Case(text: "listen: true", message: "1:9: 'listen' must be false or a value, not 'true'"),
        Case(
            text: "external_url: alight.example.org",
            message: "1:15: invalid URL 'alight.example.org', which does not start with 'https://' or 'http://'",
            help: "write 'https://alight.example.org'"),
        Case(
            text: "external_url: [https://example.org/alight]",
            message: "1:16: 'https://example.org/alight' has a path, but the dashboard can only be served at '/'",
            help: "use a separate host name"),
        Case(
            text: "external_url: https://a:0", message: "1:15: invalid port '0' in 'https://a:0', not from 1 to 65535",
            help: "write it as a browser shows it"),
        Case(text: "external_url: https://a@b", message: "1:15: invalid host name 'a@b' in 'https://a@b'"),
        Case(text: "external_url: []", message: "1:15: 'external_url' is empty"),
        Case(
            text: "control: run/", message: "1:10: 'control' must be a file, not the directory 'run/'",
            help: "write the path of a file in it"),
        Case(text: "log: { format: jsn }", message: "1:16: 'format' can't be 'jsn'"),
        Case(text: "log: { level: loud }", message: "1:15: 'level' can't be 'loud'"),
        Case(
            text: "log: json", message: "1:6: 'log' must be a mapping, not 'json'",
            help: "write a mapping with format, level"),
        Case(text: "journal: ${env:NOWHERE}/j.db", message: "1:10: the environment variable 'NOWHERE' is not set"),
        Case(text: "journal: \"a${stem}.db\"", message: "1:12: placeholder '${stem}' has no value here"),
        Case(
            text: "journal: \"a${env:X.db\"", message: "1:10: placeholder in 'a${env:X.db' has no closing '}'",
            help: "add '}'"),
        Case(text: "plugins: []", message: "1:10: 'plugins' is empty"),
        Case(text: "plugins: [{ a: b }]", message: "1:11: 'plugins' must be a string, not a mapping"),
        Case(
            text: "rules:\n  - path: in/*\n    action: log",
            message: "1:1: 'rules' in the configuration lists files and directories, not rules",
            help: "move the rules into a separate file, and write its path here"),
        Case(text: "- jobs", message: "1:1: a configuration must be a mapping, not a list"),
        Case(text: "jobs: [", message: "2:1: "),
    ]

    @Test(arguments: cases)
    func `an error is reported with its location and a remedy`(example: Case) throws {
        let diagnostics = Self.load(example.text + "\n").diagnostics
        let first = try #require(diagnostics.first)
        #expect("\(first.location.line):\(first.location.column): \(first.message)".hasPrefix(example.message))
        #expect(first.severity == .error)
        if let help = example.help { #expect(first.help?.hasPrefix(help) == true, "\(first.help ?? "")") }
    }

    @Test func `several errors are reported at once`() {
        #expect(Self.load("jobs: no\nlisten: x\nlog: { level: 3, fromat: text }\n").diagnostics.count == 4)
    }

    @Test func `a file that root must not trust is not read`() {
        let (found, diagnostics, _) = Self.load("jobs: 3\n") { _ in
            Problem("others can change it", help: "run: chmod")
        }
        #expect(diagnostics.map(\.message) == ["others can change it"])
        #expect(found.jobs == nil)
    }

    @Test func `rules that root must not trust are not read`() {
        withTempTree { tree in
            TestFile.write(tree.path("rules.yaml"), "rules: [{ path: in/*, action: log }]\n")
            var hostEnvironment = RuleLoader.Environment(
                home: nil, environment: { _ in nil }, currentDirectory: tree.root)
            hostEnvironment.distrust = { Problem("'\($0)' is open", help: "run: chmod") }
            let loaded = RuleLoader(catalog: FakeCatalog(), hostEnvironment: hostEnvironment).load(["rules.yaml"])
            #expect(loaded.diagnostics.map(\.message) == ["'\(tree.path("rules.yaml"))' is open"])
            #expect(loaded.diagnostics.first?.location.file == "rules.yaml")
            #expect(loaded.rulesInOrder.isEmpty)
        }
    }

    // MARK: - Environment variables

    private static func read(
        _ variables: [String: String], over configuration: Configuration = Configuration()
    ) throws -> Configuration {
        let hostEnvironment = RuleLoader.Environment(
            home: "/home/ada", environment: { _ in nil }, currentDirectory: "/")
        var configuration = configuration
        try ConfigurationLoader(hostEnvironment: hostEnvironment).read(variables, into: &configuration)
        return configuration
    }

    @Test func `environment variables are read`() throws {
        let found = try Self.read([
            "ALIGHT_JOURNAL": ":memory:", "ALIGHT_RETENTION": "7d", "ALIGHT_LISTEN": ":8088",
            "ALIGHT_CONTROL": "false", "ALIGHT_JOBS": "9", "ALIGHT_LOG_FORMAT": "json", "ALIGHT_LOG_LEVEL": "",
            "ALIGHT_PLUGINS": "/a:/b/../c", "ALIGHT_RULES": "/r",
            "ALIGHT_EXTERNAL_URL": "https://a:443, http://b:8080/",
        ])
        #expect(found.journal == Setting(.memory, from: .variable("ALIGHT_JOURNAL")))
        #expect(found.retentionPeriod?.value == .seconds(7 * 86_400))
        #expect(found.listen?.value == ":8088")
        #expect(found.control?.value == .some(nil))
        #expect(found.jobs?.value == 9)
        #expect(found.logFormat?.value == .json)
        #expect(found.logLevel == nil)
        #expect(found.plugins?.value == ["/a", "/c"])
        #expect(found.rules?.value == ["/r"])
        #expect(found.externalURLs?.value == ["https://a", "http://b:8080"])
    }

    @Test(arguments: [
        ("ALIGHT_EXTERNAL_URL", "https://", "ALIGHT_EXTERNAL_URL: invalid host name '' in 'https://'"),
        ("ALIGHT_JOBS", "many", "ALIGHT_JOBS: 'jobs' must be a whole number from 1 to 4096, not 'many'"),
        ("ALIGHT_RETENTION", "long", "ALIGHT_RETENTION: invalid duration 'long'"),
        ("ALIGHT_LISTEN", "80", "ALIGHT_LISTEN: '80' is not an address with a port"),
        ("ALIGHT_LOG_FORMAT", "xml", "ALIGHT_LOG_FORMAT: 'format' can't be 'xml'"),
        ("ALIGHT_JOURNAL", "j.db", "ALIGHT_JOURNAL: 'journal' must be an absolute path, not 'j.db'"),
        ("ALIGHT_CONTROL", "/run/", "ALIGHT_CONTROL: 'control' must be a file, not the directory '/run/'"),
        ("ALIGHT_RULES", "/a:b", "ALIGHT_RULES: 'rules' must be an absolute path, not 'b'"),
    ])
    func `an invalid variable is named in the error`(name: String, value: String, message: String) {
        #expect {
            try Self.read([name: value])
        } throws: {
            ($0 as? Problem)?.message == message
        }
    }

    // MARK: - Precedence

    @Test func `a variable overrides the file, key by key`() throws {
        let file = Self.load("jobs: 1\nlog: { level: debug }\nretention: { period: 1d, jobs: 7 }\n").configuration
        let held = try Self.read(["ALIGHT_JOBS": "2", "ALIGHT_RETENTION": "2d"], over: file)
        #expect(held.jobs == Setting(2, from: .variable("ALIGHT_JOBS")))
        #expect(held.logLevel?.value == .debug)
        #expect(held.retentionPeriod?.value == .seconds(2 * 86_400))
        #expect(held.retentionJobs?.value == 7)
        #expect(held.rules == nil)
    }
}
