import ActionAPI
import FileEvents
import Foundation
import OtherActions
import PluginProtocol
import Plugins
import Rules
import System
import Testing

/// Several events in one request, and the members of an event.
struct BatchTests {
    let stage: Stage

    init() throws { stage = try Stage() }

    /// Creates invocations for files of these names, in a rule whose batch size is `most`.
    func invocations(_ names: [String], most: Int = 100, with text: String = "") -> [Invocation] {
        names.map { name in
            stage.invocation { invocation in
                Stage.use(path: PathBytes("/srv/in/\(name)"), in: &invocation)
                invocation.job.id = JobID("JOB-\(name)")
                invocation.batch = most
                invocation.parameters = .object(["to": .text(Array("/out/\(name)\(text)".utf8))])
            }
        }
    }

    func run(_ script: String, _ invocations: [Invocation], batch: Int?, rawPaths: Bool = false) throws -> [Outcome] {
        var description = PluginDescription(name: "many", version: "1", parameters: nil)
        description.batch = batch
        description.rawPaths = rawPaths
        let executable = try stage.directory.write("many", script)
        let plugin = InstalledPlugin(description: description, location: executable, executable: executable)
        return PluginHandler(plugin: plugin, host: stage.host).run(invocations)
    }

    /// A script that appends the names of each request as one line to the file `runs`, and replies with one result for
    /// each event.
    var noting: String {
        """
        #!/usr/bin/python3 -S
        import json, sys
        request = json.load(sys.stdin)
        names = [event['relative'] for event in request['events']]
        with open('\(stage.directory.path)/runs', 'a') as file: file.write(' '.join(names) + '\\n')
        print(json.dumps({'outcome': 'succeeded', 'results': [
            {'outcome': 'succeeded', 'message': event['with']['to'] + ' ' + event['job']}
            for event in request['events']]}))
        """
    }

    @Test func `S42 a plugin receives all events at once, each with its own parameters and ID`() throws {
        let outcomes = try run(noting, invocations(["a", "b", "c"]), batch: 50)
        #expect(outcomes.map(\.message) == ["/out/a JOB-a", "/out/b JOB-b", "/out/c JOB-c"])
        #expect(stage.directory.text(of: "runs") == "a b c\n")
    }

    @Test func `S42 a request has at most as many events as the plugin accepts, by default one`() throws {
        var outcomes = try run(noting, invocations(["a", "b", "c"]), batch: 2)
        #expect(outcomes.map(\.message) == ["/out/a JOB-a", "/out/b JOB-b", "/out/c JOB-c"])
        #expect(stage.directory.text(of: "runs") == "a b\nc\n")
        outcomes = try run(noting, invocations(["d", "e"]), batch: nil)
        #expect(outcomes.count == 2)
        #expect(stage.directory.text(of: "runs") == "a b\nc\nd\ne\n")
    }

    @Test func `S42 a batch that is too large for one request is split`() throws {
        let names = (0..<8).map(String.init)
        let outcomes = try run(
            noting, invocations(names, with: String(repeating: "x", count: 150_000)), batch: 50)
        #expect(outcomes.allSatisfy { $0.result == .succeeded })
        let runs = (stage.directory.text(of: "runs") ?? "").split(separator: "\n")
        #expect(runs.count > 1 && runs.joined(separator: " ") == "0 1 2 3 4 5 6 7")
        let single = try run(noting, invocations(["big"], with: String(repeating: "x", count: 1 << 20)), batch: 50)
        #expect(single.map(\.code) == ["bad-request"])
    }

    @Test func `S42 an event without a result has the outcome of the batch`() throws {
        let reply = #"{"outcome":"retry","message":"all","results":[{"outcome":"succeeded"},null,7]}"#
        let outcomes = try run("#!/bin/sh\necho '\(reply)'\n", invocations(["a", "b", "c", "d"]), batch: 50)
        #expect(outcomes.map(\.result) == [.succeeded, .retry, .retry, .retry])
        #expect(outcomes.map(\.message) == ["", "all", "all", "all"])
        #expect(
            stage.log.all == [
                "warning: plugin 'many': in its reply, element 2 of 'results' is dropped: it is not an object"
            ])
    }

    @Test func `S42 an exit status for failure applies to all events`() throws {
        let outcomes = try run(
            "#!/bin/sh\necho '{\"outcome\":\"succeeded\",\"results\":[{\"outcome\":\"succeeded\"}]}'; exit 65\n",
            invocations(["a", "b"]), batch: 50)
        #expect(outcomes.map(\.result) == [.failed, .failed])
    }

    @Test func `S42 the outputs of the whole batch are known, and so are those of one event`() throws {
        let reply =
            #"{"outcome":"succeeded","outputs":["/all"],"results":[{"outcome":"succeeded"},{"outcome":"succeeded","outputs":["/b"]}]}"#
        let outcomes = try run("#!/bin/sh\necho '\(reply)'\n", invocations(["a", "b"]), batch: 50)
        #expect(outcomes.map(\.outputs) == [["/all"], ["/b"]])
    }

    @Test func `S42 a file whose name cannot be passed to a plugin fails alone`() throws {
        var given = invocations(["a", "b", "c"])
        Stage.use(path: PathBytes(Array("/srv/in/".utf8) + [0xE9]), in: &given[1])
        let outcomes = try run(noting, given, batch: 50)
        #expect(outcomes.map(\.code) == [nil, "name-not-utf8", nil])
        #expect(stage.directory.text(of: "runs") == "a c\n")
    }

    @Test func `S42 a shell command receives all events, and the environment of the first`() throws {
        let registry = HandlerRegistry(builtIn: [], discovery: stage.discovery())
        let action = Action(
            .shell(
                "cat >'\(stage.directory.path)/request'; echo \"$ALIGHT_RELATIVE\" >>'\(stage.directory.path)/first'"),
            location: SourcePosition(file: "rules.yaml", line: 3, column: 1))
        let runner = ActionRunner(registry: registry)
        var given = invocations(["a", "b"])
        for index in given.indices { given[index].input = .request }
        #expect(runner.runBlocking(action, given).map(\.result) == [.succeeded, .succeeded])
        #expect(stage.directory.text(of: "first") == "a\n")
        let text = try #require(stage.directory.text(of: "request"))
        let request = try #require(PluginRequest(record: text.utf8))
        #expect(request.events.map(\.relative) == ["a", "b"])
        #expect(request.id == "JOB-a")
    }

    @Test func `S42 built-in handlers run for one event after another, and stop in between`() {
        let registry = HandlerRegistry(
            builtIn: [OtherActions.LogHandler()], discovery: stage.discovery())
        let action = Action(
            .use(HandlerReference(name: "log"), with: .object([:])),
            location: SourcePosition(file: "rules.yaml", line: 3, column: 1))
        let runner = ActionRunner(registry: registry)
        #expect(
            runner.runBlocking(action, invocations(["a", "b"])).map(\.message) == [
                "created /srv/in/a", "created /srv/in/b",
            ])
        stage.stop.raise()
        #expect(runner.runBlocking(action, invocations(["c", "d"])).map(\.isInterrupted) == [true, true])
    }

    // MARK: Members of an event

    @Test func `S06 S07 S38 S45 an event has the previous metadata, other names, entries and text`() throws {
        var event = Stage.event(path: "/srv/in/log", kind: .modified)
        var before = event.snapshot
        before.size = 7
        before.mode = 0o600
        before.extended = [
            ExtendedAttribute(name: "user.big", value: Array(repeating: 65, count: 5_000)),
            ExtendedAttribute(name: "user.old", value: Array("was".utf8)),
            ExtendedAttribute(name: "user.same", value: [1]),
        ]
        event.snapshot.extended = [
            ExtendedAttribute(name: "user.new", value: [2]), ExtendedAttribute(name: "user.same", value: [1]),
        ]
        event.before = before
        event.sameAs = ["/srv/in/other", PathBytes(Array("/srv/in/".utf8) + [0xE9])]
        event.isByMove = true
        event.children = 3
        event.tail = TailText(offset: 7, bytes: Array("più\n".utf8), isReset: true, remaining: 9)
        let encoded = PluginEvent(event)
        #expect(encoded.sameAs?.map(\.bytes) == event.sameAs.map(\.bytes))
        #expect(encoded.via == "move" && encoded.children == 3)
        #expect(encoded.tail == PluginTail(offset: 7, text: "più\n", base64: nil, reset: true, remaining: 9))
        #expect(encoded.before?.size == 7 && encoded.before?.mode == "0600")
        #expect(encoded.before?.xattr == ["user.big": ["size": 5_000], "user.old": "was", "user.new": .null])
        event.tail?.bytes = [0xE9]
        #expect(PluginEvent(event).tail?.base64 == "6Q==")
        let plain = PluginEvent(Stage.event(path: "/srv/in/a"))
        #expect(plain.sameAs == nil && plain.via == nil && plain.before == nil && plain.tail == nil)
    }

    // MARK: Checksums

    private static func sha256(of path: PathBytes, within limit: WorkLimit) -> ContentDigest.Reading {
        ContentDigest.sha256(of: path, below: path.parent, within: limit)
    }

    private var limit: WorkLimit { WorkLimit(stage.stop, timeout: .seconds(60)) }

    @Test func `S02 a checksum is that of the bytes`() throws {
        let empty = try stage.directory.write("empty", "")
        let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        guard case .digest(let bytes) = Self.sha256(of: empty, within: limit) else {
            Issue.record("no digest")
            return
        }
        #expect(bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == digest)
        // More than one block, and different only in the last byte.
        let text = String(repeating: "x", count: 300_000)
        let one = Self.sha256(of: try stage.directory.write("one", text + "1"), within: limit)
        let two = Self.sha256(of: try stage.directory.write("two", text + "2"), within: limit)
        let same = Self.sha256(of: try stage.directory.write("same", text + "1"), within: limit)
        #expect(one == same && one != two)
    }

    @Test func `S02 an entry without content has no checksum, and a stop or the timeout stops reading`() throws {
        #expect(Self.sha256(of: stage.directory.path, within: limit) == .notRegular)
        let absent = stage.directory.path.appending("absent")
        #expect(Self.sha256(of: absent, within: limit) == .unreadable(errno: ENOENT))
        let file = try stage.directory.write("file", "x")
        let link = stage.directory.path.appending("link")
        #expect(file.withCString { file in link.withCString { symlink(file, $0) } } == 0)
        #expect(Self.sha256(of: link, within: limit) == .notRegular)
        let large = try stage.directory.write("large", "")
        #expect(truncate(large.description, 1 << 40) == 0)
        let brief = WorkLimit(stage.stop, timeout: .milliseconds(50))
        if case .ended(let outcome) = Self.sha256(of: large, within: brief) {
            #expect(outcome.code == "timed-out")
        } else {
            Issue.record("a terabyte was read")
        }
        stage.stop.raise()
        let stopped = Outcome.interrupted("stopped during the reading of the content")
        #expect(Self.sha256(of: file, within: limit) == .ended(stopped))
    }
}
