import FileEvents
import Foundation
import Glibc
import JSON
import PluginProtocol
import Rules
import System
import Testing
@testable import ActionAPI
@testable import FileActions
@testable import OtherActions
@testable import PersistentPlugins
@testable import PluginConformance
@testable import Plugins
@testable import Programs

/// Serving plugins that follow the protocol, as real processes.
struct ServingTests {
    private static let good = """
        ready()
        for request in requests(): result(request, message=request['id'])
        """

    @Test func `one process serves many requests`() throws {
        let serving = try ServingStage(Self.good)
        for job in 1...20 {
            let outcome = serving.ask(job)
            #expect(outcome.ending == .succeeded, "\(outcome)")
            #expect(outcome.message == ServingStage.id(job).description)
            #expect(outcome.process?.status == nil)
            #expect(outcome.process?.request.contains(ServingStage.id(job).description) == true)
        }
        #expect(serving.started.count == 1)
        serving.close()
        #expect(serving.started.allSatisfy(isGone))
        #expect(serving.leftovers == [])
        #expect(serving.stage.log.all == [])
    }

    @Test func `a file that the plugin writes is not part of it, and an interpreter's script is`() throws {
        let serving = try ServingStage(
            """
            sys.argv[1:] = sys.argv[-1:]
            ready()
            for request in requests():
                note('book', request['id'])
                result(request)
            """)
        let book = serving.stage.folder.path.appending("book").bytes
        for (arguments, processes) in [([Array("--add".utf8), Array("to".utf8), book], 1), ([book], 4)] {
            var plugin = serving.plugin
            plugin.arguments = arguments
            let handler = PluginHandler(plugin: plugin, host: serving.stage.host)
            let before = serving.started.count
            for job in 1...4 { #expect(handler.run(serving.invocation(job)).ending == .succeeded) }
            #expect(serving.started.count - before == processes)
        }
        serving.close()
    }

    @Test func `a request is that of run with a type, and its deadline counts from the time of sending`() throws {
        let serving = try ServingStage(
            """
            import datetime
            ready()
            for request in requests():
                note('request', json.dumps(request))
                assert list(request)[0] == 'type'
                deadline = datetime.datetime.fromisoformat(request['deadline'].replace('Z', '+00:00'))
                left = deadline - datetime.datetime.now(datetime.timezone.utc)
                result(request, message='fresh' if 3000 < left.total_seconds() <= 3600 else str(left),
                    values={'cwd': os.getcwd(), 'scratch': os.listdir(request['scratch']) == [],
                        'env': sorted(key for key in os.environ if key != 'LC_CTYPE'), 'tmp': os.environ['TMPDIR']})
            """)
        let outcome = serving.ask(1) { $0.timeout = .seconds(3600) }
        #expect(outcome.message == "fresh", "\(outcome)")
        #expect(outcome.values["env"] == ["ALIGHT_PROTOCOL", "HOME", "LANG", "PATH", "TMPDIR", "TZ"])
        #expect(outcome.values["scratch"] == true)
        #expect(outcome.values["cwd"] == outcome.values["tmp"])
        let text = try #require(serving.text(of: "request"))
        let request = try #require(JSONValue(json: text.utf8)?.object)
        #expect(request["type"] == "run")
        #expect(request["interrupted"] == false)
        #expect(request["events"]?.array?.first?.object?["path"] == "/srv/in/a b.jpg")
        serving.close()
    }

    @Test func `results arrive in any order, with as many open requests as the window`() throws {
        let serving = try ServingStage(
            """
            ready(4)
            open, most = [], 0
            for request in requests():
                open.append(request)
                most = max(most, len(open))
                if len(open) == 4:
                    while open: result(open.pop(), message=str(most))
            """)
        let outcomes = serving.ask(all: 12)
        #expect(outcomes.count == 12)
        #expect(outcomes.allSatisfy { $0.ending == .succeeded && $0.message == "4" }, "\(outcomes)")
        #expect(serving.started.count == 1)
        serving.close()
    }

    @Test func `a thousand requests at once pass a window of four`() throws {
        let serving = try ServingStage(Self.good)
        let outcomes = serving.ask(all: 1000)
        #expect(outcomes.count == 1000)
        #expect(outcomes.enumerated().allSatisfy { $1.message == ServingStage.id($0 + 1).description })
        #expect(serving.started.count == 1)
        serving.close()
        #expect(serving.leftovers == [])
    }

    @Test func `several processes are started when all windows are full`() throws {
        let serving = try ServingStage(
            """
            ready(1)
            for request in requests():
                while len(set(open(f'{HERE}/started'))) < 3: time.sleep(0.01)
                result(request)
            """, change: { $0.parallel = 3 })
        #expect(serving.ask(all: 9).allSatisfy { $0.ending == .succeeded })
        #expect(serving.started.count == 3)
        serving.close()
        #expect(serving.started.allSatisfy(isGone))
    }

    @Test func `other variables need another process, and variables that differ per event use run`() throws {
        let serving = try ServingStage(
            """
            if sys.argv[1] == 'run':
                request = json.loads(sys.stdin.readline())
                print(json.dumps({'outcome': 'succeeded', 'message': 'run ' + os.environ['SIZE']}))
                sys.exit()
            ready()
            for request in requests(): result(request, message=os.environ['SIZE'] + ' ' + os.getcwd())
            """, change: { $0.parallel = 2 })
        for size in ["1", "2", "1"] {
            let outcome = serving.ask { invocation in
                invocation.environment = [("SIZE", Array(size.utf8))]
                invocation.directory = "/usr"
            }
            #expect(outcome.message == "\(size) /usr")
        }
        #expect(serving.started.count == 2)
        let outcome = serving.ask { invocation in
            invocation.environment = [("SIZE", Array("9".utf8))]
            invocation.hasFixedSurroundings = false
        }
        #expect(outcome.message == "run 9")
        serving.close()
    }

    @Test func `an environment that no request uses any more is removed`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests(): result(request, message=os.environ['SIZE'])
            """, limits: { $0.idle = .zero }, change: { $0.parallel = 2 })
        func ask(_ size: Int) -> String {
            serving.ask { $0.environment = [("SIZE", Array("\(size)".utf8))] }.message
        }
        for size in 1...4 { #expect(ask(size) == "\(size)") }
        #expect(eventually { serving.stage.host.serving.count == 0 })
        #expect(ask(1) == "1")
        serving.close()
        #expect(serving.stage.host.serving.count == 0)
        #expect(serving.started.allSatisfy(isGone))
    }

    @Test func `a plugin that fails at its start is started once, although several are allowed`() throws {
        let serving = try ServingStage(
            """
            note('started', os.getpid())
            os.close(1)
            time.sleep(0.3)
            sys.exit(1)
            """, change: { $0.parallel = 3 })
        #expect(serving.ask().code == "cannot-start")
        #expect(serving.started.count == 1)
        serving.close()
    }

    @Test func `each event of a batch has its result`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                result(request, results=[{'outcome': 'skipped', 'message': e['job'][-1]} for e in request['events']])
            """, change: { $0.batch = 3 })
        let invocations = (1...7).map { job in serving.invocation(job) { $0.batch = 100 } }
        let outcomes = PluginHandler(plugin: serving.plugin, host: serving.stage.host).run(invocations)
        #expect(outcomes.map(\.message) == ["1", "2", "3", "4", "5", "6", "7"])
        #expect(outcomes.allSatisfy { $0.ending == .skipped })
        serving.close()
    }

    @Test func `outcomes, outputs and values are those of run`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                result(request, 'retry', message='busy', code='busy', retry_after=7, outputs=['x', '/srv/y'], values={'n': 1})
            """)
        let outcome = serving.ask { $0.directory = "/srv" }
        #expect(outcome.ending == .retry)
        #expect(outcome.message == "busy")
        #expect(outcome.code == "busy")
        #expect(outcome.retryAfter == .seconds(7))
        #expect(outcome.outputs == ["/srv/x", "/srv/y"])
        #expect(outcome.values == ["n": 1])
        serving.close()
    }

    @Test func `progress and log lines belong to the job while it is alone`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                say(type='progress', id=request['id'], fraction=0.4, message='page 5 of 12')
                print('<4>watch out', file=sys.stderr, flush=True)
                print('{"progress": 0.5}', file=sys.stderr, flush=True)
                result(request)
            """)
        let first = serving.ask(1)
        let second = serving.ask(2)
        serving.close()
        #expect(serving.stage.progress.value.sorted() == ["0.4 page 5 of 12", "0.4 page 5 of 12", "0.5 -", "0.5 -"])
        #expect(serving.stage.log.all == ["warning: watch out", "warning: watch out"])
        #expect(first.log == "<4>watch out\n{\"progress\": 0.5}\n")
        #expect(second.log == first.log)
    }

    @Test func `a process that is idle too long exits, and the next request starts another`() throws {
        let serving = try ServingStage(
            Self.good + "\nnote('ended')\n", limits: { $0.idle = .milliseconds(200) })
        #expect(serving.ask(1).ending == .succeeded)
        #expect(eventually { serving.started.allSatisfy(isGone) })
        #expect(serving.text(of: "ended") == "\n")
        #expect(serving.ask(2).ending == .succeeded)
        #expect(serving.started.count == 2)
        serving.close()
        #expect(serving.stage.log.all == [])
    }

    @Test func `pings are answered, and a process that does not answer is ended`() throws {
        let limits: (inout ServeLimits) -> Void = { limits in
            limits.ping = .milliseconds(100)
            limits.pong = .seconds(60)
        }
        let good = try ServingStage(
            """
            ready()
            for request in requests():
                result(request)
                pings = [read(), read(), read()]
                for ping in pings: note('pings', json.dumps(ping)); say(type='pong', n=ping['n'])
            """.replacing("pings = [read(), read(), read()]", with: "pings = [read()]"), limits: limits)
        #expect(good.ask(1).ending == .succeeded)
        #expect(eventually { good.text(of: "pings")?.contains(#"{"type": "ping", "n": 1}"#) == true })
        #expect(good.ask(2).ending == .succeeded)
        #expect(good.started.count == 1)
        good.close()
        let deaf = try ServingStage(
            """
            ready()
            for request in requests():
                result(request)
                while True: time.sleep(60)
            """,
            limits: { limits in
                limits.ping = .milliseconds(50)
                limits.pong = .milliseconds(50)
            })
        #expect(deaf.ask(1).ending == .succeeded)
        #expect(eventually { deaf.started.allSatisfy(isGone) })
        deaf.close()
        #expect(deaf.stage.log.all == ["warning: plugin 'resize' did not answer a ping and was stopped"])
    }

    @Test func `after the maximum number of requests another process takes over`() throws {
        let serving = try ServingStage(Self.good, limits: { $0.requests = 5 })
        #expect((1...12).map { serving.ask($0).ending }.allSatisfy { $0 == .succeeded })
        serving.close()
        #expect(serving.started.count == 3)
        #expect(serving.stage.log.all == [])
    }

    // MARK: - Timeout and stop

    @Test func `a request that takes too long is cancelled, and its answer within the grace is no success by itself`()
        throws
    {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                assert read() == {'type': 'cancel', 'id': request['id']}
                if request['id'].endswith('1'): result(request, 'failed', message='cancelled')
                else: result(request, message='done all the same')
            """)
        let first = serving.ask(1) { $0.timeout = .milliseconds(200) }
        #expect(first.ending == .retry)
        #expect(first.code == "timed-out")
        #expect(first.message == "plugin 'resize' took longer than 200ms and was stopped")
        let second = serving.ask(2) { $0.timeout = .milliseconds(200) }
        #expect(second.ending == .succeeded)
        #expect(second.message == "done all the same")
        #expect(serving.started.count == 1)
        serving.close()
    }

    @Test func `a stop cancels open requests and returns waiting ones`() throws {
        let serving = try ServingStage(
            """
            ready(1)
            for request in requests():
                note('open')
                assert read()['type'] == 'cancel'
                result(request, 'retry')
            """)
        let stage = serving.stage
        Thread.detachNewThread {
            _ = eventually { stage.folder.text(of: "open") != nil }
            stage.stop.raise()
        }
        let outcomes = serving.ask(all: 3)
        #expect(outcomes.allSatisfy { $0.isInterrupted && $0.code == "interrupted" }, "\(outcomes)")
        // The answer to the first cancel may arrive before the next waiting request is stopped.
        #expect(["\n", "\n\n", "\n\n\n"].contains(serving.text(of: "open")))
        serving.close()
        #expect(serving.started.allSatisfy(isGone))
        #expect(stage.log.all == [])
        #expect(serving.ask(4).isInterrupted, "nothing is served any more")
    }

    @Test func `a replaced process finishes its open requests, and new ones go to the new process`() throws {
        let serving = try ServingStage(
            """
            ready(4)
            waiting = []
            for request in requests():
                waiting.append(request)
                note('open')
                if len(waiting) == 4:
                    while not os.path.exists(f'{HERE}/go'): time.sleep(0.01)
                    for one in waiting: result(one, message='old')
            note('ended')
            """)
        let outcomes = Locked<[Outcome]>([])
        let old = Thread {
            let all = serving.ask(all: 4)
            outcomes.change { $0 = all }
        }
        old.start()
        #expect(eventually { serving.text(of: "open") == "\n\n\n\n" })
        try serving.replace("ready()\nfor request in requests(): result(request, message='new')\n")
        #expect(serving.ask(5).message == "new")
        #expect(serving.text(of: "ended") == nil)
        try serving.stage.folder.write("go", "")
        #expect(eventually { outcomes.value.count == 4 })
        #expect(outcomes.value.allSatisfy { $0.message == "old" })
        #expect(eventually { serving.text(of: "ended") != nil })
        #expect(serving.ask(6).message == "new")
        #expect(serving.started.count == 2)
        serving.close()
        #expect(serving.stage.log.all == [])
    }

    @Test func `the process of a removed or replaced plugin exits when the rules are loaded again`() throws {
        for isRemoved in [true, false] {
            let serving = try ServingStage(Self.good)
            #expect(serving.ask(1).ending == .succeeded)
            serving.stage.host.retireOutdated()
            #expect(serving.ask(2).ending == .succeeded)
            #expect(serving.started.count == 1)
            if isRemoved {
                try #require(unlink(serving.plugin.executable.description) == 0)
            } else {
                try serving.replace(Self.good)
            }
            serving.stage.host.retireOutdated()
            #expect(eventually { serving.started.allSatisfy(isGone) })
            if !isRemoved { #expect(serving.ask(3).ending == .succeeded) }
            serving.close()
            #expect(serving.stage.log.all == [])
        }
    }

    @Test func `the process of a removed plugin exits when another plugin is used`() throws {
        let serving = try ServingStage(Self.good)
        #expect(serving.ask(1).ending == .succeeded)
        let removed = serving.started
        try serving.stage.folder.folder("b")
        let text = try String(contentsOfFile: serving.plugin.executable.description, encoding: .utf8)
        let other = try serving.stage.folder.write("b/other", text)
        try #require(unlink(serving.plugin.executable.description) == 0)
        let plugin = InstalledPlugin(description: serving.plugin.description, location: other, executable: other)
        // Other plugins are checked at most once a second.
        let isEnded = eventually {
            _ = PluginHandler(plugin: plugin, host: serving.stage.host).run(serving.invocation(2))
            return removed.allSatisfy(isGone)
        }
        #expect(isEnded)
        serving.close()
    }

    @Test func `a timeout of a request is logged when the grace period starts`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                while (message := read())['type'] != 'cancel': pass
                result(request, outcome='retry', message='cancelled')
            """)
        let outcome = serving.ask { $0.timeout = .seconds(1) }
        #expect(outcome.code == "timed-out")
        serving.close()
        #expect(
            serving.stage.log.all == [
                "warning: plugin 'resize' has taken longer than 1s; it is asked to stop, and killed after 1m"
            ])
    }

    @Test(arguments: [1, 2])
    func `the processes of all environments together do not exceed 'parallel'`(parallel: Int) throws {
        let serving = try ServingStage(
            """
            import fcntl
            mine = f'{HERE}/alive-{os.getpid()}'
            open(mine, 'w').close()
            alive = [name for name in os.listdir(HERE) if name.startswith('alive-')]
            if len(alive) > \(parallel): note('toomany', alive)
            ready(1)
            for request in requests(): result(request, message=os.environ['SIZE'])
            os.unlink(mine)
            """, limits: { $0.slice = .milliseconds(50) }, change: { $0.parallel = parallel })
        let outcomes = Locked<[String]>([])
        onThreads(9) { index in
            for round in 0..<8 {
                let outcome = serving.ask(index * 100 + round) {
                    $0.environment = [("SIZE", Array("\(index % 3)".utf8))]
                }
                outcomes.change { $0.append(outcome.message == "\(index % 3)" ? "right" : "\(outcome)") }
            }
        }
        #expect(outcomes.value.count == 72 && outcomes.value.allSatisfy { $0 == "right" }, "\(Set(outcomes.value))")
        #expect(serving.text(of: "toomany") == nil)
        serving.close()
        #expect(serving.started.allSatisfy(isGone))
        #expect(serving.leftovers == [])
    }

    @Test func `directories left by a killed instance are removed at the next start`() throws {
        let serving = try ServingStage(Self.good)
        try serving.stage.folder.folder("scratch/run-\(getpid())-99999/deep", mode: 0o700)
        try serving.stage.folder.folder("scratch/run-x-1", mode: 0o700)
        #expect(serving.ask().ending == .succeeded)
        serving.close()
        #expect(serving.leftovers == ["run-x-1"])
    }
}
