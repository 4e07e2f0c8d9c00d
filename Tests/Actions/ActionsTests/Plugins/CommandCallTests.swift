import ActionAPI
import Foundation
import PluginProtocol
import Rules
import System
import Testing

struct CommandCallTests {
    let stage: Stage

    init() throws { stage = try Stage() }

    func template(_ text: String) throws -> Template { try #require(Template(text)) }

    @Test func `an element of exec stays one argument, byte for byte`() throws {
        let dump = try stage.directory.write(
            "dump", "#!/bin/sh\nfor a; do printf '%s\\0' \"$a\"; done >'\(stage.directory.path)/arguments'\n")
        let path = Array("/srv/in/-rf $(x)\n'".utf8) + [0xE9]
        let outcome = stage.run(
            .exec([try template("\(dump)"), try template("${path}"), try template("x=${name};"), try template("")])
        ) { Stage.use(path: PathBytes(path), in: &$0) }
        #expect(outcome.result == .succeeded, "\(outcome)")
        let written = try Data(contentsOf: URL(fileURLWithPath: "\(stage.directory.path)/arguments"))
        let name = path.dropFirst("/srv/in/".utf8.count)
        #expect(Array(written) == path + [0] + Array("x=".utf8) + name + Array(";".utf8) + [0, 0])
    }

    @Test func `exec gets the request on standard input, and its output is logged`() throws {
        let outcome = stage.run(.exec([try template("head"), try template("-c29")]))
        #expect(outcome.result == .succeeded)
        #expect(stage.log.all == ["info: {\"attempt\":2,\"deadline\":\"2025"])
        #expect(outcome.log == "{\"attempt\":2,\"deadline\":\"2025")
    }

    @Test func `a path with a slash is relative to the directory of the rules file`() throws {
        try stage.directory.write("tool", "#!/bin/sh\nexit 64\n")
        let outcome = stage.run(.exec([try template("./tool")]))
        #expect(outcome.code == "status-64")
        #expect(outcome.message == "'\(stage.directory.path)/tool' exited with status 64")
    }

    @Test func `a placeholder never makes exec search PATH for a program`() throws {
        let outcome = stage.run(.exec([try template("${name}")])) { Stage.use(path: "/srv/in/true", in: &$0) }
        #expect(outcome.result == .failed)
        #expect(outcome.code == "cannot-start")
    }

    @Test func `a missing program is a failure with its name`() throws {
        let outcome = stage.run(.exec([try template("no-such-tool")]))
        #expect(outcome.message == "no program 'no-such-tool' in /usr/local/bin:/usr/bin:/bin")
        #expect(outcome.result == .retry, "it was there when the rules were loaded")
        #expect(stage.run(.exec([])).result == .failed)
        let named = stage.run(.exec([try template("./${name}")])) { Stage.use(path: "/srv/in/none", in: &$0) }
        #expect(named.result == .failed && named.code == "cannot-start", "it may never have been there")
        #expect(stage.run(.exec([try template("/nowhere/x")])).code == "cannot-start")
    }

    @Test func `a program that is missing only when it starts is retried`() throws {
        try stage.directory.write("tool", "#!/bin/sh\n")
        // A directory that only this process has open, with a number that no launcher has.
        let directory = open(stage.directory.path.description, O_RDONLY | O_CLOEXEC)
        let high = fcntl(directory, F_DUPFD_CLOEXEC, 700)
        defer {
            close(directory)
            close(high)
        }
        try #require(high >= 700)
        let tool = "/proc/self/fd/\(high)/tool"
        let reason = "'\(tool)': cannot start '\(tool)': No such file or directory"
        let written = stage.run(.exec([try template(tool)]))
        #expect(written.result == .retry && written.code == "cannot-start")
        #expect(written.message == reason)
        let named = stage.run(.exec([try template("/proc/self/fd/\(high)/${name}")])) {
            Stage.use(path: "/srv/in/tool", in: &$0)
        }
        #expect(named.result == .failed && named.code == "cannot-start", "it may never have been there")
        #expect(named.message == reason)
    }

    @Test(.enabled(if: geteuid() == 0, "only root refuses"))
    func `as root, a command that others could change since the rules were loaded is not run`() throws {
        let tool = try stage.directory.write("tool", "#!/bin/sh\n")
        let script = try stage.directory.write("script", "#!/usr/bin/env \(tool)\n")
        let commands: [Action.Work] = [
            .exec([try template("\(tool)")]), .exec([try template("\(script)")]),
            .exec([try template("sh"), try template("${path}")]), .shell("\(tool) && true"),
        ]
        func outcomes() -> [Outcome] {
            commands.map { stage.run($0) { Stage.use(path: tool, in: &$0) } }
        }
        #expect(outcomes().allSatisfy { $0.result == .succeeded })
        try #require(chmod(tool.description, 0o777) == 0)
        for outcome in outcomes() {
            #expect(outcome.result == .retry && outcome.code == "cannot-start")
            #expect(outcome.message.hasSuffix("'\(tool)' can be changed by others than root (mode 0777)"))
        }
        try #require(chmod(tool.description, 0o755) == 0)
        #expect(outcomes().allSatisfy { $0.result == .succeeded })
    }

    @Test(.enabled(if: geteuid() == 0, "only root refuses"))
    func `a command that runs as another user may belong to that user`() throws {
        let tool = try stage.directory.write("tool", "#!/bin/sh\n")
        try #require(chmod(stage.directory.path.description, 0o755) == 0)
        try #require(chown(tool.description, 65_534, 65_534) == 0)
        func run(as user: UInt32) throws -> Outcome {
            stage.run(.exec([try template("\(tool)")])) {
                $0.confinement.user = ProgramUser(
                    text: "\(user)", name: nil, uid: user, gid: user, groups: [user], home: "/")
            }
        }
        #expect(try run(as: 65_534).result == .succeeded)
        #expect(try run(as: 0).message.contains("belongs to user 65534"))
    }

    @Test func `a shell command gets the event as environment variables`() throws {
        let outcome = stage.run(
            .shell("printf '%s' \"$ALIGHT_PATH\" >'\(stage.directory.path)/seen'; echo done; exit 75")
        ) {
            Stage.use(path: "/srv/in/a; rm -rf $HOME `x`", in: &$0)
        }
        #expect(outcome.result == .retry)
        #expect(outcome.message == "done")
        #expect(stage.directory.text(of: "seen") == "/srv/in/a; rm -rf $HOME `x`")
    }

    @Test func `the last line of stderr takes precedence over stdout as the message`() {
        #expect(stage.run(.shell("echo why >&2; echo out; exit 65")).message == "why")
    }

    @Test func `the output of a command is never parsed as a response`() {
        #expect(stage.run(.shell("echo '{\"outcome\":\"failed\"}'")).result == .succeeded)
    }
}
