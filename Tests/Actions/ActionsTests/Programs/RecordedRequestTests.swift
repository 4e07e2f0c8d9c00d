import ActionAPI
import FileEvents
import Foundation
import JSON
import PluginProtocol
import Plugins
import Rules
import System
import Testing

/// The record that is stored of a program that ran.
struct RecordedRequestTests {
    let stage: Stage

    init() throws { stage = try Stage() }

    private func retained(_ outcome: Outcome) throws -> JSONValue {
        let request = try #require(outcome.process?.request)
        #expect(request.utf8.count <= 65_536)
        return try #require(JSONValue(json: request.utf8))
    }

    /// Runs a script as a plugin whose schema has secrets.
    ///
    /// The script records its request.
    private func run(_ invocations: [Invocation], batch: Int? = nil) throws -> [Outcome] {
        let secret = ParameterSchema(type: "string", writeOnly: true)
        let account = ParameterSchema(
            type: "object", properties: ["user": ParameterSchema(type: "string"), "password": secret])
        var description = PluginDescription(
            name: "upload", version: "1",
            parameters: ParameterSchema(
                type: "object",
                properties: [
                    "to": ParameterSchema(type: "string"), "token": secret, "account": account,
                    "keys": ParameterSchema(type: "array", items: secret),
                ]))
        description.batch = batch
        let executable = try stage.directory.write("upload", "#!/bin/sh\ncat >'\(stage.directory.path)/request'\n")
        let plugin = InstalledPlugin(description: description, location: executable, executable: executable)
        return PluginHandler(plugin: plugin, host: stage.host).run(invocations)
    }

    private let parameters = Parameter.object([
        "to": .text(Array("/out".utf8)), "token": .text(Array("hunter2".utf8)),
        "account": .object(["user": .text(Array("ada".utf8)), "password": .text([0xE9])]),
        "keys": .array([.text(Array("hunter2".utf8)), .text(Array("hunter3".utf8))]),
    ])

    @Test func `a secret reaches the plugin, but is not stored`() throws {
        let outcomes = try run([stage.invocation { $0.parameters = parameters }])
        let outcome = try #require(outcomes.first)
        #expect(stage.directory.text(of: "request")?.contains("hunter2") == true)
        #expect(outcome.process?.status == 0)
        let request = try retained(outcome)
        #expect(
            request.object?["with"] == [
                "to": "/out", "token": "***", "account": ["user": "ada", "password": "***"], "keys": ["***", "***"],
            ])
        #expect(request.object?["events"]?.array?.first?.object?["path"] == "/srv/in/a b.jpg")
        #expect(outcome.process?.request?.contains("hunter") == false)
    }

    @Test func `in a batch each event is stored with its own job, without secrets`() throws {
        let invocations = ["a", "b", "c"].map { name in
            stage.invocation { invocation in
                Stage.use(path: PathBytes("/srv/in/\(name)"), in: &invocation)
                invocation.batch = 10
                invocation.parameters = parameters
            }
        }
        let outcomes = try run(invocations, batch: 10)
        for (name, outcome) in zip(["a", "b", "c"], outcomes) {
            let request = try retained(outcome)
            #expect(request.object?["event_count"] == 3)
            let events = try #require(request.object?["events"]?.array)
            #expect(events.map { $0.object?["relative"] } == [.string(name)])
            #expect(events.first?.object?["with"]?.object?["token"] == "***")
            #expect(outcome.process?.request?.contains("hunter") == false)
        }
        #expect(outcomes.count == 3)
    }

    @Test func `a request that is too large is stored without its large members`() throws {
        let text = String(repeating: "x", count: 100_000)
        let tail = TailText(offset: 0, bytes: Array(text.utf8))
        var outcome = stage.run(.shell("true")) {
            $0.job.event.tail = tail
            $0.input = .request
        }
        let event = try retained(outcome).object?["events"]?.array?.first?.object
        #expect(event?["tail"] == "[100050 bytes left out]")
        outcome = try #require(
            try run([stage.invocation { $0.parameters = .object(["to": .text(Array(text.utf8))]) }]).first)
        let request = try retained(outcome)
        #expect(request.object?["with"] == "[100009 bytes left out]")
        #expect(request.object?["events"]?.array?.first?.object?["path"] == "/srv/in/a b.jpg")
    }

    @Test func `exit status and signal are stored, also for commands`() throws {
        #expect(stage.run(.shell("exit 65")).process?.status == 65)
        let killed = try #require(stage.run(.shell("kill -9 $$")).process)
        #expect(killed.status == nil && killed.signal == 9)
        let late = try #require(stage.run(.shell("sleep 60")) { $0.timeout = .milliseconds(100) }.process)
        #expect(late.status == nil && late.signal == nil)
        // A program that was not started has no record.
        #expect(stage.run(.exec([try #require(Template("/nowhere/x"))])).process == nil)
    }

    @Test func `a request without secrets is stored as it was sent`() throws {
        let outcome = stage.run(.shell("cat >'\(stage.directory.path)/request'")) { $0.input = .request }
        #expect(stage.directory.text(of: "request") == (outcome.process?.request ?? "") + "\n")
    }
}
