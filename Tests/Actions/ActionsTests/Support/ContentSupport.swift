import ActionAPI
import FileEvents
import Globbing
import JSON
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// A rule for the directory `in` of a tree, with one built-in action whose parameters are written as in a rules file.
struct ContentRule {
    let root: PathBytes
    var handler: any Handler
    var attempt = 1
    var stop = StopSignal()
    var timeout = Duration.seconds(60)
    let log = LogLines()
    var id = "01JD8Z3T1WQ2V7N0C5M4K9R6XB"

    init(_ root: PathBytes, _ handler: any Handler) {
        self.root = root
        self.handler = handler
        TestFile.makeDirectory(root.appending("in"))
    }

    func path(_ name: String) -> PathBytes { root.appending("in").appending(name) }

    func invocation(
        _ path: PathBytes, _ with: JSONValue, kind: EventKind = .created, from: PathBytes? = nil
    ) -> Invocation {
        var snapshot = Snapshot.sample()
        if case .present(let seen) = KernelFileSystem().stat(path) { snapshot = seen }
        let event = FileEvent.sample(kind, path, root: root.appending("in"), from: from, snapshot)
        var job = Job(id: JobID(id), rule: "r", event: event)
        job.attempt = attempt
        let schema = handler.summary.parameters
        let template = ParameterTemplate(parsing: with)
        if let schema {
            let problems = ParameterCheck.problems(in: template, schema: schema)
            #expect(problems.isEmpty, "\(problems)")
        }
        let filled = schema.map { ParameterCheck.fillingDefaults(template, schema: $0) } ?? template
        var invocation = Invocation(
            job: job, rule: SourcePosition(file: "rules.yaml", line: 1, column: 1), baseDirectory: root,
            maximumAttempts: 5,
            parameters: .object([:]),
            roots: [root.appending("in")], now: event.time,
            timeout: timeout, stop: stop, log: log.logger)
        invocation.fillIn(filled, schema: schema)
        return invocation
    }

    func run(_ name: String, _ with: JSONValue, kind: EventKind = .created, from: String? = nil) -> Outcome {
        handler.run(invocation(path(name), with, kind: kind, from: from.map { path($0) }))
    }

    /// Runs the action for several files at once.
    func run(_ names: [String], _ with: JSONValue) -> [Outcome] {
        handler.run(names.map { invocation(path($0), with) })
    }
}

/// A row of a table: the files before the action, the file and its parameters, and the files after the action.
struct ContentRow: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// The content of files by their path relative to the tree.
    ///
    /// A path that ends in a slash is a directory.
    var before: [String: String]
    /// The file, relative to `in`.
    var file: String
    var with: JSONValue
    var kind = EventKind.created
    var from: String?
    var outcome: Outcome.Result
    /// A part of the message.
    ///
    /// `@` represents the tree.
    var message: String
    /// The listing of the tree, in the format of ``listing(_:_:)``.
    var after: [String]

    init(
        _ description: String, before: [String: String], file: String = "a.txt", with: JSONValue,
        kind: EventKind = .created, from: String? = nil, outcome: Outcome.Result = .succeeded, message: String = "",
        after: [String]
    ) {
        testDescription = description
        self.before = before
        self.file = file
        self.with = with
        self.kind = kind
        self.from = from
        self.outcome = outcome
        self.message = message
        self.after = after
    }

    /// Runs the row and checks the result.
    func play(_ handler: any Handler) {
        withTempTree { tree in
            for (path, content) in before.sorted(by: { $0.key < $1.key }) {
                if path.hasSuffix("/") {
                    TestFile.makeDirectory(tree.path(String(path.dropLast())))
                } else {
                    TestFile.write(tree.path(path), content)
                }
            }
            let outcome = ContentRule(tree.root, handler).run(file, with, kind: kind, from: from)
            let shown = outcome.message.replacing("\(tree.root)", with: "@")
            #expect(outcome.result == self.outcome, "\(outcome.message)")
            #expect(shown.contains(message), "\(shown)")
            #expect(listing(tree.root) == after)
        }
    }
}

extension ParameterTemplate {
    /// Creates the value and parses the placeholders in its strings.
    fileprivate init(parsing value: JSONValue) {
        switch value {
        case .string(let text):
            let template = Template(text)
            self = .text(template ?? Template(literal: text))
        case .array(let elements): self = .array(elements.map { ParameterTemplate(parsing: $0) })
        case .object(let members): self = .object(members.mapValues { ParameterTemplate(parsing: $0) })
        default: self = .value(value)
        }
    }
}

/// Runs a program of the system and returns its exit status and its output.
@discardableResult
func call(
    _ program: PathBytes, _ arguments: [String], in directory: PathBytes, environment: [String: String] = [:]
) -> (status: Int32?, output: String, error: String) {
    let logs = TestFile.makeTemporaryDirectory("call")
    defer { TestFile.removeTree(logs) }
    let running = RunningProgram(
        program, arguments, in: directory, environment: environment, output: logs.appending("log"))
    let status = running.wait()
    return (status, running.output, running.error)
}
