import ActionAPI
import Foundation
import JSON
import PluginProtocol
import Plugins
import Rules
import System
import Testing
import TestKit

/// Serving plugins that follow the protocol, as real processes.
struct ServingTests {
    @Test func `one process serves many requests`() throws {
        let serving = try ServingStage(ServingStage.good)
        for job in 1...20 {
            let outcome = serving.ask(job)
            #expect(outcome.result == .succeeded, "\(outcome)")
            #expect(outcome.message == ServingStage.id(job).description)
            #expect(outcome.process?.status == nil)
            #expect(outcome.process?.request?.contains(ServingStage.id(job).description) == true)
        }
        #expect(serving.started.count == 1)
        serving.close()
        #expect(serving.started.allSatisfy(isGone))
        #expect(serving.leftovers == [])
        #expect(serving.stage.log.all == [])
    }

    @Test func `a process whose scratch directory has gone is replaced`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                result(request, message=str(os.path.isdir(os.environ['TMPDIR'])))
            """)
        for job in 1...3 {
            let outcome = serving.ask(job)
            #expect(outcome.message == "True", "\(outcome)")
            try FileManager.default.removeItem(atPath: "\(serving.stage.scratch().parent)")
        }
        #expect(serving.started.count == 3)
        serving.close()
        #expect(serving.leftovers == [])
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
        let book = serving.stage.directory.path.appending("book").bytes
        for (arguments, processes) in [([Array("--add".utf8), Array("to".utf8), book], 1), ([book], 4)] {
            var plugin = serving.plugin
            plugin.arguments = arguments
            let handler = PluginHandler(plugin: plugin, host: serving.stage.host)
            let before = serving.started.count
            for job in 1...4 { #expect(handler.run(serving.invocation(job)).result == .succeeded) }
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
        #expect(outcomes.allSatisfy { $0.result == .succeeded && $0.message == "4" }, "\(outcomes)")
        #expect(serving.started.count == 1)
        serving.close()
    }

    @Test func `a thousand requests at once pass a window of four`() throws {
        let serving = try ServingStage(ServingStage.good)
        let outcomes = serving.ask(all: 1000)
        #expect(outcomes.count == 1000)
        #expect(outcomes.enumerated().allSatisfy { $1.message == ServingStage.id($0 + 1).description })
        #expect(serving.started.count == 1)
        serving.close()
        #expect(serving.leftovers == [])
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
        #expect(outcomes.allSatisfy { $0.result == .skipped })
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
        #expect(outcome.result == .retry)
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
        #expect(first.result == .retry)
        #expect(first.code == "timed-out")
        #expect(first.message == "plugin 'resize' took longer than 200ms and was stopped")
        let second = serving.ask(2) { $0.timeout = .milliseconds(200) }
        #expect(second.result == .succeeded)
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
            _ = Deadline.wait { stage.directory.text(of: "open") != nil }
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
}
