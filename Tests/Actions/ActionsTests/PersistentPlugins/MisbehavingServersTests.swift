import ActionAPI
import Foundation
import Glibc
import PersistentPlugins
import PluginProtocol
import Plugins
import Rules
import System
import Testing
import TestKit

/// Serving plugins that violate the protocol: each request gets the correct outcome, and no process survives.
struct MisbehavingServersTests {
    // MARK: - Start

    @Test func `a plugin that never sends ready cannot be started`() throws {
        let serving = try ServingStage(
            "note('started', os.getpid())\nprint('loading', file=sys.stderr, flush=True)\ntime.sleep(600)\n",
            grace: .seconds(10), limits: { $0.ready = .seconds(1) })
        let outcomes = serving.ask(all: 3)
        #expect(outcomes.allSatisfy { $0.result == .retry && $0.code == "cannot-start" })
        #expect(
            outcomes.allSatisfy { $0.message.hasPrefix("plugin 'resize' did not send 'ready' within 1 s") },
            "\(outcomes)")
        serving.close()
        #expect(serving.started.allSatisfy(isGone))
    }

    @Test func `a plugin that sends ready late is waited for`() throws {
        let serving = try ServingStage(
            "time.sleep(0.3)\nready()\nfor request in requests(): result(request)\n")
        #expect(serving.ask(all: 3).allSatisfy { $0.result == .succeeded })
        serving.close()
    }

    @Test func `a plugin that speaks another version is unusable`() throws {
        let serving = try ServingStage("read()\nsay(type='ready', protocol=2)\nread()\n")
        let outcome = serving.ask()
        #expect(outcome.result == .failed)
        #expect(outcome.code == "cannot-start")
        #expect(outcome.message == "plugin 'resize' uses version 2 of the protocol, and this release supports 1")
        serving.close()
    }

    @Test func `a plugin that exits at once cannot be started, with the reason`() throws {
        let serving = try ServingStage("sys.exit('no licence')\n")
        let outcome = serving.ask()
        #expect(outcome.result == .retry)
        #expect(outcome.code == "cannot-start")
        #expect(outcome.message == "plugin 'resize' exited with status 1 before it was ready: no licence")
        serving.close()
    }

    @Test func `a file that is not a program cannot be started, and neither can a missing one`() throws {
        let serving = try ServingStage("")
        try serving.stage.directory.write("resize", "#!/nowhere/python\n")
        let path = serving.plugin.executable
        let bad = serving.ask()
        #expect(bad.result == .failed)
        #expect(bad.code == "cannot-start")
        #expect(
            bad.message
                == "plugin 'resize': cannot start '\(path)': its interpreter '/nowhere/python' does not exist")
        #expect(unlink(path.description) == 0)
        let gone = serving.ask()
        #expect(gone.result == .retry)
        #expect(gone.code == "cannot-start")
        #expect(gone.message == "plugin 'resize': '\(path)' doesn't exist")
        serving.close()
    }

    // MARK: - Output

    @Test func `a line that is not JSON is logged, and ten such lines terminate the plugin`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                print('hello', flush=True)
                if request['id'].endswith('1'): result(request)
                elif request['interrupted']: result(request, message='again')
                else: print('Traceback\\n' * 9, flush=True)
            """)
        #expect(serving.ask(1).result == .succeeded)
        #expect(serving.ask(2).message == "again")
        serving.close()
        let log = serving.stage.log.all
        #expect(
            log.first
                == "warning: plugin 'resize' printed a line that is not a JSON object: \"hello\"; a plugin logs "
                + "to stderr")
        #expect(
            log.contains {
                $0.contains("too many lines that are not JSON objects, such as \"Traceback\", and was stopped")
            })
    }

    @Test func `an unexpected answer is logged and ignored`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                result({'id': 'nobody', 'attempt': 1})
                say(type='weather', id=request['id'])
                result(request, message='first')
                result(request, 'failed')
            """)
        #expect(serving.ask(1).message == "first")
        #expect(serving.ask(2).message == "first")
        serving.close()
        let id = ServingStage.id(2)
        #expect(
            serving.stage.log.all.contains(
                "warning: plugin 'resize' answered attempt 1 of 'nobody', which isn't open; the answer is ignored"))
        #expect(
            serving.stage.log.all.contains(
                "warning: plugin 'resize' answered attempt 2 of '\(id)', which isn't open; the answer is ignored"))
    }

    @Test func `an answer without an outcome is a bad response`() throws {
        let serving = try ServingStage(
            "ready()\nfor request in requests(): say(type='result', id=request['id'], attempt=request['attempt'])\n")
        let outcome = serving.ask()
        #expect(outcome.result == .failed)
        #expect(outcome.code == "bad-response")
        serving.close()
    }

    @Test func `a line of 100 MB fails only its own request`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                if request['id'].endswith('2'): result(request, message='x' * 100_000_000)
                else: result(request)
            """)
        #expect(serving.ask(1).result == .succeeded)
        let outcome = serving.ask(2)
        #expect(outcome.result == .failed)
        #expect(outcome.code == "too-large")
        #expect(outcome.message == "plugin 'resize' printed a line of more than 1 MiB and was stopped")
        #expect(serving.ask(3).result == .succeeded)
        serving.close()
    }

    @Test func `a flood on stderr blocks no request, and a part of it is stored`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                os.write(2, b'first\\n')
                for _ in range(2000): os.write(2, b'x' * 99_999 + b'\\n')
                os.write(2, b'last\\n')
                result(request)
            """)
        let outcome = serving.ask()
        #expect(outcome.result == .succeeded)
        #expect(outcome.log.hasPrefix("first\nxxx"))
        #expect(outcome.log.hasSuffix("xxx\nlast\n"))
        #expect(outcome.log.utf8.count < 140_000)
        #expect(serving.stage.log.all.reduce(0) { $0 + $1.utf8.count } < 200_000)
        serving.close()
    }

    // MARK: - Crashes

    @Test func `a crash in the middle of a line is a crash, and the request is sent again once`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                note('asked', json.dumps([request['id'][-1], request['attempt'], request['interrupted']]))
                if request['interrupted'] and request['id'].endswith('1'): result(request, message='again')
                else:
                    print('dying', file=sys.stderr, flush=True)
                    sys.stdout.write('{"type":"result","id":"' + request['id'])
                    sys.stdout.flush()
                    os.kill(os.getpid(), signal.SIGKILL)
            """)
        let first = serving.ask(1)
        #expect(first.result == .succeeded)
        #expect(first.message == "again")
        let second = serving.ask(2)
        #expect(second.result == .retry)
        #expect(second.code == "plugin-died")
        #expect(second.message == "plugin 'resize' was killed by signal 9: dying")
        #expect(second.process?.signal == 9)
        #expect(second.isUncertain)
        #expect(
            serving.text(of: "asked") == """
                ["1", 2, false]
                ["1", 2, true]
                ["2", 2, false]
                ["2", 2, true]

                """)
        serving.close()
    }

    @Test func `a request to a plugin that is not idempotent is not sent again`() throws {
        let serving = try ServingStage(
            "ready()\nfor request in requests(): note('asked'); os.abort()\n", change: { $0.idempotent = false })
        let outcome = serving.ask()
        #expect(outcome.result == .failed)
        #expect(outcome.code == "plugin-died")
        #expect(outcome.message == "plugin 'resize' was killed by signal 6")
        #expect(serving.text(of: "asked") == "\n")
        serving.close()
    }

    @Test func `four requests that were open at a crash are finished by the next process`() throws {
        let serving = try ServingStage(
            """
            ready(4)
            waiting = []
            for request in requests():
                if request['interrupted']: result(request, message='again'); continue
                waiting.append(request)
                if len(waiting) == 4: os.kill(os.getpid(), signal.SIGSEGV)
            """)
        let outcomes = serving.ask(all: 4)
        #expect(outcomes.allSatisfy { $0.message == "again" }, "\(outcomes)")
        #expect(serving.started.count == 2)
        serving.close()
    }

    @Test func `a request that hangs times out, and the next process finishes the others`() throws {
        let serving = try ServingStage(
            """
            ready(4)
            waiting = []
            for request in requests():
                if request['interrupted']: result(request, message='again'); continue
                waiting.append(request)
                note('open')
                if len(waiting) == 4:
                    while True: time.sleep(60)
            """, grace: .milliseconds(300))
        let others = Locked<[Outcome]>([])
        let thread = Thread {
            let all = serving.ask(all: 3)
            others.change { $0 = all }
        }
        thread.start()
        #expect(Deadline.wait { serving.text(of: "open") == "\n\n\n" })
        let outcome = serving.ask(4) { $0.timeout = .milliseconds(200) }
        #expect(outcome.result == .retry)
        #expect(outcome.code == "timed-out")
        #expect(Deadline.wait { others.value.count == 3 })
        #expect(others.value.allSatisfy { $0.message == "again" }, "\(others.value)")
        serving.close(isAtOnce: true)
        #expect(serving.started.allSatisfy(isGone))
    }

    @Test func `a plugin that keeps crashing fails each request`() throws {
        let serving = try ServingStage("ready()\nread()\nos.abort()\n", change: { $0.idempotent = false })
        for job in 1...6 { #expect(serving.ask(job).code == "plugin-died") }
        serving.close()
        #expect(serving.started.count == 6)
    }

    @Test func `a plugin that closes its output but keeps running is terminated`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                if request['interrupted']: result(request, message='again'); continue
                os.close(1)
                time.sleep(600)
            """)
        #expect(serving.ask().message == "again")
        serving.close()
        #expect(serving.started.allSatisfy(isGone))
        #expect(
            serving.stage.log.all.contains("warning: plugin 'resize' closed its standard output and was stopped"))
    }

    @Test func `a plugin that closes its input but keeps running is terminated`() throws {
        let serving = try ServingStage(
            """
            ready(1)
            request = next(requests())
            if not os.path.exists(f'{HERE}/closed'):
                os.close(0)
                note('closed')
                result(request)
                time.sleep(600)
            result(request, message='again')
            """, change: { $0.idempotent = true })
        #expect(serving.ask(1).result == .succeeded)
        #expect(serving.ask(2).message == "again")
        serving.close()
        #expect(serving.started.allSatisfy(isGone))
    }

    @Test func `a daemon that inherits the output is terminated with the plugin`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                if request['interrupted']: result(request, message='again'); continue
                if os.fork() == 0:
                    os.setsid()
                    note('daemon', os.getpid())
                    time.sleep(600)
                while not os.path.exists(f'{HERE}/daemon'): time.sleep(0.01)
                sys.exit(3)
            """)
        #expect(serving.ask().message == "again")
        #expect(Deadline.wait { serving.stage.directory.processes(in: "daemon").allSatisfy(isGone) })
        serving.close()
    }

    // MARK: - Exit

    @Test func `a plugin that ignores the end of its input and SIGTERM is killed`() throws {
        let serving = try ServingStage(
            """
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            ready()
            for request in requests(): result(request)
            while True: time.sleep(60)
            """, grace: .milliseconds(300))
        #expect(serving.ask().result == .succeeded)
        serving.close()
        #expect(serving.started.count == 1)
        #expect(serving.started.allSatisfy(isGone))
        #expect(serving.leftovers == [])
    }

    @Test func `closing at once sends SIGTERM, also to busy processes`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests():
                note('open')
                time.sleep(600)
            """)
        let outcomes = Locked<[Outcome]>([])
        let thread = Thread {
            let outcome = serving.ask()
            outcomes.change { $0 = [outcome] }
        }
        thread.start()
        #expect(Deadline.wait { serving.text(of: "open") != nil })
        serving.close(isAtOnce: true)
        #expect(Deadline.wait { outcomes.value.first?.isInterrupted == true })
        #expect(serving.started.allSatisfy(isGone))
    }
}
