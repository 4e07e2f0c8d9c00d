import ActionAPI
import Foundation
import PersistentPlugins
import PluginProtocol
import Plugins
import Rules
import System
import Testing
import TestKit

/// A serving plugin, written in Python, and requests for it.
struct ServingStage {
    let stage: Stage
    let plugin: InstalledPlugin

    /// The first part of each script: `say` writes a message, `result` an answer, and `ready` completes the handshake.
    private static let beginning = """
        #!/usr/bin/python3 -S
        import json, os, signal, sys, time
        HERE = '@HERE@'
        def say(**message):
            sys.stdout.write(json.dumps(message) + '\\n')
            sys.stdout.flush()
        def result(request, outcome='succeeded', **more):
            say(type='result', id=request['id'], attempt=request['attempt'], outcome=outcome, **more)
        def note(name, text=''):
            with open(f'{HERE}/{name}', 'a') as file:
                file.write(f'{text}\\n')
        def read():
            line = sys.stdin.readline()
            return json.loads(line) if line else {'type': 'end'}
        def ready(concurrent=4):
            assert sys.argv[1:] == ['serve'], sys.argv
            assert read() == {'type': 'hello', 'protocol': 1, 'capabilities': ['cancel', 'progress']}
            say(type='ready', protocol=1, concurrent=concurrent)
            note('started', os.getpid())
        def requests():
            while (message := read())['type'] != 'end':
                if message['type'] == 'ping': say(type='pong', n=message['n'])
                if message['type'] == 'run': yield message

        """

    /// A script that answers each request with its ID.
    static let good = """
        ready()
        for request in requests(): result(request, message=request['id'])
        """

    /// Creates a plugin from a script.
    ///
    /// - Parameters:
    ///   - script: The plugin, after the part that all scripts share.
    ///   - grace: The grace period.
    ///   - limits: Changes the limits of the conversation. A slow machine needs a long time for a start.
    ///   - change: Changes the description of the plugin.
    /// - Throws: An error if its directory or its files cannot be created.
    init(
        _ script: String, grace: Duration = .seconds(60), limits: (inout ServeLimits) -> Void = { _ in },
        change: (inout PluginDescription) -> Void = { _ in }
    ) throws {
        var serveLimits = ServeLimits()
        serveLimits.ready = .seconds(60)
        limits(&serveLimits)
        stage = try Stage(grace: grace, serveLimits: serveLimits)
        var description = PluginDescription(name: "resize", version: "1", parameters: nil)
        description.modes = ["run", "serve"]
        change(&description)
        let executable = try stage.directory.write("resize", Self.text(script, in: stage.directory))
        plugin = InstalledPlugin(description: description, location: executable, executable: executable)
    }

    private static func text(_ script: String, in directory: TemporaryDirectory) -> String {
        beginning.replacing("@HERE@", with: directory.path.description) + script
    }

    /// Replaces the script, as an update does.
    func replace(_ script: String) throws {
        let new = try stage.directory.write("new", Self.text(script, in: stage.directory))
        try #require(rename(new.description, plugin.executable.description) == 0)
    }

    /// Sends one request and waits for its outcome; blocks.
    func ask(_ job: Int = 1, _ change: (inout Invocation) -> Void = { _ in }) -> Outcome {
        PluginHandler(plugin: plugin, host: stage.host).run(invocation(job, change))
    }

    /// Sends `count` requests at once and waits for their outcomes; blocks.
    func ask(all count: Int, timeout: Duration = .seconds(60)) -> [Outcome] {
        let outcomes = Locked<[Int: Outcome]>([:])
        onThreads(count) { index in
            let outcome = ask(index + 1) { $0.timeout = timeout }
            outcomes.change { $0[index] = outcome }
        }
        return (0..<count).compactMap { outcomes.value[$0] }
    }

    func invocation(_ job: Int, _ change: (inout Invocation) -> Void = { _ in }) -> Invocation {
        stage.invocation { invocation in
            invocation.job.id = Self.id(job)
            change(&invocation)
        }
    }

    static func id(_ job: Int) -> JobID { JobID("01JD8Z3T1WQ2V7N0C5M4K" + String(10_000 + job)) }

    func close(isAtOnce: Bool = false) { stage.host.close(isAtOnce: isAtOnce) }

    /// The process IDs of all processes that were started.
    var started: [pid_t] { stage.directory.processes(in: "started") }

    func text(of name: String) -> String? { stage.directory.text(of: name) }

    /// The entries that are left in the directory of scratch directories.
    var leftovers: [String] {
        let directory = stage.directory.path.appending("scratch").description
        return ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).sorted()
    }
}
