import ActionAPI
import Foundation
import JSON
import PluginProtocol
import Plugins
import Rules
import System
import Testing
import TestKit

struct PluginHandlerTests {
    let stage: Stage

    init() throws { stage = try Stage() }

    // MARK: - The request

    @Test func `a plugin reads the whole request`() throws {
        let script = """
            #!/usr/bin/python3 -S
            import json, os, sys
            text = sys.stdin.buffer.read()
            open('\(stage.directory.path)/request', 'wb').write(text)
            assert sys.argv[1:] == ['run'] and text.endswith(b'}\\n') and text.count(b'\\n') == 1
            json.loads(text)
            """
        let outcome = try stage.plugin(
            script,
            invoke: { invocation in
                invocation.parameters = .object([
                    "size": .value(256), "to": .text(Array("/srv/thumbs/a b.webp".utf8)), "raw": .text([0xE9]),
                ])
                invocation.steps = [Outcome(.succeeded, "sum", outputs: ["/srv/x"], values: ["sha256": "ab"])]
            })
        #expect(outcome.result == .succeeded, "\(outcome)")
        let scratch = "\(stage.scratch())"
        let expected: JSONValue = [
            "protocol": 1, "id": "01JD8Z3T1WQ2V7N0C5M4K9R6XB", "attempt": 2, "max_attempts": 5, "interrupted": false,
            "dry_run": false, "deadline": "2025-11-21T07:05:27Z",
            "rule": ["name": "thumbnails", "file": .string("\(stage.directory.path)/photos.yaml"), "line": 12],
            "with": ["size": 256, "to": "/srv/thumbs/a b.webp", "raw": ["base64": "6Q=="]],
            "scratch": .string(scratch), "previous": ["attempt": 1, "outcome": "retry", "message": "busy"],
            "steps": [
                ["outcome": "succeeded", "message": "sum", "outputs": ["/srv/x"], "values": ["sha256": "ab"]]
            ],
            "events": [
                [
                    "event": "created", "path": "/srv/in/a b.jpg", "relative": "a b.jpg", "root": "/srv/in",
                    "origin": "live", "type": "file", "size": 48213, "mtime": "2025-11-21T07:04:23.118204511Z",
                    "btime": "2025-11-21T07:04:20.002Z", "mode": "0644", "uid": 1000, "gid": 1000, "nlink": 1,
                    "id": "8:1:131204:1763708660002000000", "time": "2025-11-21T07:04:25.12Z",
                ]
            ],
        ]
        let text = try #require(stage.directory.text(of: "request"))
        #expect(JSONValue(json: text.utf8) == expected)
    }

    @Test func `a name that is not UTF-8 is passed exactly, in base64 and in the environment`() throws {
        let name = Array("/srv/in/caf".utf8) + [0xE9, 0x0A] + Array(".jpg".utf8)
        let script = """
            #!/usr/bin/python3 -S
            import base64, json, os, sys
            event = json.load(sys.stdin)['events'][0]
            path = base64.b64decode(event['path_base64'])
            assert path == os.environb[b'ALIGHT_PATH'] == b'/srv/in/caf\\xe9\\n.jpg', path
            assert base64.b64decode(event['relative_base64']) == os.environb[b'ALIGHT_RELATIVE'] == b'caf\\xe9\\n.jpg'
            assert 'root_base64' not in event and event['path'] == '/srv/in/caf\\ufffd\\n.jpg'
            print(json.dumps({'outcome': 'succeeded', 'outputs': [{'base64': base64.b64encode(path).decode()}]}))
            """
        let outcome = try stage.plugin(
            script, change: { $0.rawPaths = true }, invoke: { Stage.use(path: PathBytes(name), in: &$0) })
        #expect(outcome.result == .succeeded, "\(outcome)")
        #expect(outcome.outputs == [PathBytes(name)])
    }

    @Test func `a plugin that has not asked for raw names never receives one`() throws {
        let path = PathBytes(Array("/srv/in/".utf8) + [0xE9])
        let outcome = try stage.plugin(
            "#!/bin/sh\ntouch '\(stage.directory.path)/ran'\n", invoke: { Stage.use(path: path, in: &$0) })
        #expect(outcome.result == .failed)
        #expect(outcome.code == "name-not-utf8")
        #expect(stage.directory.text(of: "ran") == nil)
    }

    @Test func `the environment is as the protocol specifies`() throws {
        let outcome = try stage.plugin(
            "#!/bin/sh\nenv | sort >'\(stage.directory.path)/env'\npwd >>'\(stage.directory.path)/env'\n")
        #expect(outcome.result == .succeeded)
        let scratch = "\(stage.scratch())"
        #expect(
            stage.directory.text(of: "env") == """
                ALIGHT_ATTEMPT=2
                ALIGHT_EVENT=created
                ALIGHT_FROM=
                ALIGHT_ID=01JD8Z3T1WQ2V7N0C5M4K9R6XB
                ALIGHT_PATH=/srv/in/a b.jpg
                ALIGHT_PROTOCOL=1
                ALIGHT_REASON=busy
                ALIGHT_RELATIVE=a b.jpg
                ALIGHT_ROOT=/srv/in
                ALIGHT_RULE=thumbnails
                ALIGHT_SCRATCH=\(scratch)
                HOME=/home/nobody
                LANG=C.UTF-8
                PATH=/usr/local/bin:/usr/bin:/bin
                PWD=\(scratch)
                TMPDIR=\(scratch)
                TZ=Europe/Berlin
                \(scratch)

                """)
    }

    @Test func `the scratch directory is private, empty, and removed afterwards with its contents`() throws {
        let target = try stage.directory.directory("target")
        try stage.directory.write("target/keep", "")
        #expect(try stage.plugin("#!/bin/sh\n").result == .succeeded)
        let script = """
            #!/bin/bash
            [ "$(stat -c %a .)" = 700 ] && [ -z "$(ls -A)" ] || exit 64
            ln -s '\(target)' link; ln -s '\(target)/keep' file; printf x >$'caf\\xe9'; mkfifo pipe
            mkdir shut; touch shut/x; chmod 0 shut
            for i in {1..100}; do mkdir -p deep && cd deep; touch x; done
            """
        let outcome = try stage.plugin(script)
        #expect(outcome.result == .succeeded, "\(outcome)")
        #expect(stage.leftovers == [])
        #expect(stage.directory.text(of: "target/keep") == "")
        #expect(stage.log.all == [])
    }

    // MARK: - The response

    @Test(arguments: [
        (#"echo '{"outcome":"failed"}'"#, true, true), ("exit 65", true, true), ("exit 78", false, true),
        ("exit 69", true, false), ("exit 71", false, false), ("exit 74", true, false), ("exit 75", true, false),
        ("exit 1", true, false), ("exit 1", false, false), ("kill -9 $$", false, false), ("exit 126", true, false),
        ("nothing-there", true, false), ("echo no JSON", true, false), (#"echo '{"outcome":"retry"}'"#, true, false),
    ])
    func `a failure is about the file if the plugin reports the outcome failed`(
        script: String, isIdempotent: Bool, isAboutFile: Bool
    ) throws {
        let outcome = try stage.plugin("#!/bin/sh\n\(script)\n", change: { $0.idempotent = isIdempotent })
        #expect(outcome.result == .failed || outcome.result == .retry)
        #expect(outcome.isAboutFile == isAboutFile, "\(outcome)")
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var script: String
        var isIdempotent = true
        var result: Outcome.Result
        var message: String
        var code: String?
        var retryAfter: Duration?
        var testDescription: String { script }
    }

    static let cases = [
        Case(script: "exit 0", result: .succeeded, message: ""),
        Case(script: "echo", result: .succeeded, message: ""),
        Case(script: #"printf %s '{"outcome":"succeeded","message":"a\nb"}'"#, result: .succeeded, message: "a b"),
        Case(script: #"echo '{"outcome":"skipped","code":"gone"}'"#, result: .skipped, message: "", code: "gone"),
        Case(
            script: #"echo '{"outcome":"retry","retry_after":2.5}'"#, result: .retry, message: "",
            retryAfter: .milliseconds(2500)),
        Case(
            script: #"echo '{"outcome":"not_ready","retry_after":0}'"#, result: .notReady, message: "",
            retryAfter: .seconds(1)),
        Case(script: #"echo '{"outcome":"failed","retry_after":9}'"#, result: .failed, message: ""),
        Case(
            script: "echo Traceback: x", result: .failed,
            message: "plugin 'resize': the reply is not JSON: \"Traceback: x\" at byte 0; "
                + "a plugin writes one JSON object to stdout and logs to stderr", code: "bad-response"),
        Case(
            script: #"printf '{"outcome":"succ'"#, result: .failed,
            message: "plugin 'resize': the reply is not JSON: \"{\"outcome\":\"succ\" at byte 0; "
                + "a plugin writes one JSON object to stdout and logs to stderr", code: "bad-response"),
        Case(
            script: #"echo '{"outcome":"fine"}'"#, result: .failed,
            message: "plugin 'resize': the reply has the unknown outcome \"fine\"; "
                + "a plugin writes one JSON object to stdout and logs to stderr", code: "bad-response"),
        Case(
            script: #"printf '{"outcome":"succeeded","values":{"v":'; head -c 1000 /dev/zero | tr '\0' '['; "#
                + #"head -c 1000 /dev/zero | tr '\0' ']'; echo '}}'"#,
            result: .failed,
            message: "plugin 'resize': the reply is nested more than 64 levels deep; "
                + "a plugin writes one JSON object to stdout and logs to stderr", code: "bad-response"),
        Case(
            script: "echo '[1]'", result: .failed,
            message: "plugin 'resize': the reply is not an object; "
                + "a plugin writes one JSON object to stdout and logs to stderr", code: "bad-response"),
        Case(
            script: #"echo '{"outcome":"failed","message":"full","code":"disk","retry_after":90000}'; exit 75"#,
            result: .retry, message: "full", code: "disk", retryAfter: .seconds(86_400)),
        Case(script: "echo licence busy >&2; exit 69", result: .retry, message: "licence busy", code: "status-69"),
        Case(
            script: "exit 71", isIdempotent: false, result: .retry, message: "plugin 'resize' exited with status 71",
            code: "status-71"),
        Case(script: "exit 74", result: .retry, message: "plugin 'resize' exited with status 74", code: "status-74"),
        Case(script: "echo bad input >&2; exit 64", result: .failed, message: "bad input", code: "status-64"),
        Case(script: "exit 72", result: .failed, message: "plugin 'resize' exited with status 72", code: "status-72"),
        Case(script: "exit 78", result: .failed, message: "plugin 'resize' exited with status 78", code: "status-78"),
        Case(script: "exit 1", result: .retry, message: "plugin 'resize' exited with status 1", code: "status-1"),
        Case(
            script: "exit 1", isIdempotent: false, result: .failed, message: "plugin 'resize' exited with status 1",
            code: "status-1"),
        Case(script: "nothing-there", result: .failed, message: "", code: "cannot-start"),
        Case(
            script: "exit 126", result: .failed, message: "plugin 'resize' exited with status 126", code: "cannot-start"
        ),
        Case(
            script: "kill -9 $$", result: .retry, message: "plugin 'resize' was killed by signal 9", code: "signal-9"),
        Case(
            script: "kill -11 $$", isIdempotent: false, result: .failed,
            message: "plugin 'resize' was killed by signal 11", code: "signal-11"),
        Case(
            script: "head -c 2M /dev/zero", result: .failed,
            message: "plugin 'resize' printed more than 1 MiB and was stopped", code: "too-large"),
    ]

    @Test(arguments: cases)
    func `status and response together determine the outcome`(_ example: Case) throws {
        let outcome = try stage.plugin(
            "#!/bin/sh\n\(example.script)\n", change: { $0.idempotent = example.isIdempotent })
        #expect(outcome.result == example.result)
        if !example.message.isEmpty { #expect(outcome.message == example.message) }
        #expect(outcome.code == example.code)
        #expect(outcome.retryAfter == example.retryAfter)
    }

    @Test func `members beyond the limits are truncated or dropped, with a warning`() throws {
        let script = #"""
            #!/usr/bin/python3 -S
            import json
            print(json.dumps({'outcome': 'succeeded', 'message': 'é' * 5000, 'code': 'NOT OK', 'retry_after': 'soon',
                'outputs': ['/a/../b', 'c', 7, '', {'base64': '?'}], 'values': {'x': 'y' * 70000}, 'unknown': 1}))
            """#
        let outcome = try stage.plugin(script)
        #expect(outcome.result == .succeeded)
        #expect((4000...4096).contains(outcome.message.utf8.count))
        #expect(outcome.message.hasSuffix("é…"))
        #expect(outcome.code == nil)
        let scratch = stage.scratch()
        #expect(outcome.outputs == ["/b", scratch.appending("c")])
        #expect(outcome.values.isEmpty)
        #expect(stage.log.all.count == 6)
        #expect(stage.log.all.allSatisfy { $0.hasPrefix("warning: plugin 'resize': in its reply, ") })
    }

    @Test func `values and outputs are passed on`() throws {
        let script =
            "#!/bin/sh\necho '{\"outcome\":\"succeeded\",\"outputs\":[\"/o\"],\"values\":{\"width\":256,\"a\":[1.5]}}'\n"
        let outcome = try stage.plugin(script)
        #expect(outcome.outputs == ["/o"])
        #expect(outcome.values == ["width": 256, "a": [1.5]])
    }

    @Test func `log lines are logged and stored, and progress is reported`() throws {
        let script =
            "#!/bin/sh\necho '<4>careful' >&2; echo '{\"progress\":0.5,\"message\":\"half\"}' >&2; echo plain >&2\n"
        let outcome = try stage.plugin(script)
        #expect(stage.log.all == ["warning: careful", "info: plain"])
        #expect(stage.progress.value == ["0.5 half"])
        #expect(outcome.log == "<4>careful\n{\"progress\":0.5,\"message\":\"half\"}\nplain\n")
        #expect(outcome.message.isEmpty)
    }

    @Test func `a flood of log lines is not passed on without limit`() throws {
        let outcome = try stage.plugin("#!/bin/sh\nseq 1 100000 >&2\necho '<3>worse' >&2\n")
        #expect(outcome.result == .succeeded)
        #expect(stage.log.all.count < 20_000)
        #expect(stage.log.all.last?.hasSuffix("more bytes were not logged") == true)
        #expect(stage.log.all.contains("error: worse"))
    }

    // MARK: - Timeout, stop and start

    @Test func `a timeout is retried for an idempotent plugin`() throws {
        let outcome = try stage.plugin(
            "#!/bin/sh\nsleep 600\n", invoke: { $0.timeout = .milliseconds(200) })
        #expect(outcome.result == .retry)
        #expect(outcome.message == "plugin 'resize' took longer than 200ms and was stopped")
        #expect(outcome.code == "timed-out")
    }

    @Test func `a stop does not count as an attempt`() throws {
        let stage = stage
        Thread.detachNewThread {
            _ = Deadline.wait { stage.directory.text(of: "up") != nil }
            stage.stop.raise()
        }
        let outcome = try stage.plugin("#!/bin/sh\ntouch '\(stage.directory.path)/up'\nsleep 600\n")
        #expect(outcome.isInterrupted)
        let second = try stage.plugin("#!/bin/sh\ntouch '\(stage.directory.path)/second'\n")
        #expect(second.isInterrupted)
        #expect(stage.directory.text(of: "second") == nil)
    }

    @Test func `a missing or broken executable is a failure with the reason`() throws {
        let bad = try stage.plugin("#!/nope/ruby\n")
        #expect(bad.result == .failed)
        #expect(bad.code == "cannot-start")
        #expect(bad.message.hasSuffix("its interpreter '/nope/ruby' does not exist"))
        let plugin = InstalledPlugin(
            description: PluginDescription(name: "gone", version: "1", parameters: nil), location: "/nowhere/gone",
            executable: "/nowhere/gone")
        let gone = PluginHandler(plugin: plugin, host: stage.host).run(stage.invocation())
        #expect(gone.code == "cannot-start")
        #expect(gone.result == .retry, "it was there when the rules were loaded")
    }

    @Test func `a plugin that is replaced in two steps is retried, with the actual reason`() throws {
        try stage.directory.directory("search/tool")
        let executable = try stage.directory.write("search/tool/tool", "#!/bin/sh\ncat >/dev/null\n")
        try stage.directory.write("search/tool/plugin.yaml", "", mode: 0o644)
        let yaml = Locked<JSONValue?>(["name": "tool", "version": "1", "protocol": [1]])
        let discovery = PluginDiscovery(
            host: stage.host, searchDirectories: [stage.directory.path.appending("search")]
        ) { _ in
            yaml.value.map { .success(PositionedValue($0)) }
                ?? .failure(Problem("half a text"))
        }
        let registry = HandlerRegistry(builtIn: [], discovery: discovery)
        let found = try registry.find("tool", from: stage.directory.path).get()
        let action = Action(
            .use(found.reference, with: .object([:])), location: SourcePosition(file: "rules.yaml", line: 3, column: 1))
        func run() -> Outcome { ActionRunner(registry: registry).run(action, stage.invocation()) }
        #expect(run().result == .succeeded)
        func isTriedAgain(_ reason: String) -> Bool {
            let outcome = run()
            return outcome.result == .retry && outcome.code == "cannot-start" && outcome.message.contains(reason)
        }
        // Its file is missing for a short time.
        let aside = stage.directory.path.appending("aside").description
        try #require(rename(executable.description, aside) == 0)
        #expect(isTriedAgain("'\(executable)' doesn't exist"))
        // The file exists, but is not executable yet.
        try #require(rename(aside, executable.description) == 0 && chmod(executable.description, 0o644) == 0)
        #expect(isTriedAgain("is not executable"))
        try #require(chmod(executable.description, 0o755) == 0)
        #expect(run().result == .succeeded)
        // Its description is being written.
        yaml.change { $0 = nil }
        try stage.directory.write("search/tool/plugin.yaml", "name: to", mode: 0o644)
        #expect(isTriedAgain("half a text"))
        yaml.change { $0 = ["name": "tool", "version": "1", "protocol": [1]] }
        try stage.directory.write("search/tool/plugin.yaml", "name: tool", mode: 0o644)
        #expect(run().result == .succeeded)
        // The whole directory is missing.
        let directory = stage.directory.path.appending("search/tool")
        try #require(rename(directory.description, aside) == 0)
        #expect(isTriedAgain("'\(directory)' doesn't exist"))
    }

    @Test func `a timeout is logged when the grace period starts`() throws {
        let outcome = try stage.plugin(
            "#!/bin/sh\ntrap 'exit 0' TERM\nwhile :; do sleep 0.05; done\n", invoke: { $0.timeout = .seconds(1) })
        #expect(outcome.code == "timed-out")
        let warning =
            "warning: plugin 'resize' has taken longer than 1s; it is asked to stop, and killed after 10s"
        #expect(stage.log.all.first == warning)
    }

    @Test func `a reply that is not UTF-8 is refused with the offset of the first invalid byte`() throws {
        let outcome = try stage.plugin(
            "#!/bin/sh\nprintf '{\"outcome\":\"succeeded\",\"message\":\"\\303\\244\\377\"}'\n")
        #expect(outcome.result == .failed && outcome.code == "bad-response")
        #expect(outcome.message.contains("the reply is not UTF-8: 0xFF at byte 36;"), "\(outcome)")
    }

    @Test(.enabled(if: geteuid() == 0, "only root refuses"))
    func `as root, an executable that others can change is not run`() throws {
        let executable = try stage.directory.write("open", "#!/bin/sh\n", mode: 0o757)
        let plugin = InstalledPlugin(
            description: PluginDescription(name: "open", version: "1", parameters: nil), location: executable,
            executable: executable)
        let outcome = PluginHandler(plugin: plugin, host: stage.host).run(stage.invocation())
        #expect(outcome.code == "cannot-start")
        #expect(outcome.message.hasSuffix("can be changed by others than root (mode 0757)"))
        #expect(outcome.result == .retry)
    }

    @Test(.enabled(if: geteuid() == 0, "only root refuses"))
    func `as root, a safe executable is checked again when it is another file`() throws {
        let executable = try stage.directory.write("tool", "#!/bin/sh\n", mode: 0o755)
        let plugin = InstalledPlugin(
            description: PluginDescription(name: "tool", version: "1", parameters: nil), location: executable,
            executable: executable)
        func run() -> Outcome { PluginHandler(plugin: plugin, host: stage.host).run(stage.invocation()) }
        #expect(run().result == .succeeded)
        try #require(chmod(executable.description, 0o777) == 0)
        #expect(run().message.hasSuffix("can be changed by others than root (mode 0777)"))
        try #require(chmod(executable.description, 0o755) == 0)
        #expect(run().result == .succeeded)
        // It is replaced by a file of another user with the same times.
        let other = try stage.directory.write("other", "#!/bin/sh\n", mode: 0o755)
        try #require(chown(other.description, 65534, 65534) == 0)
        try #require(rename(other.description, executable.description) == 0)
        #expect(run().message.contains("belongs to user 65534"))
    }
}
