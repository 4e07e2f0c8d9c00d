@testable import ActionAPI
import Foundation
import Glibc
@testable import PersistentPlugins
import PluginProtocol
@testable import Plugins
import Rules
import System
import Testing
import TestKit

/// The processes of serving plugins: how many are started, for whom, and when they exit.
struct ServingProcessTests {
    @Test func `several processes are started when all windows are full`() throws {
        let serving = try ServingStage(
            """
            ready(1)
            for request in requests():
                while len(set(open(f'{HERE}/started'))) < 3: time.sleep(0.01)
                result(request)
            """, change: { $0.parallel = 3 })
        #expect(serving.ask(all: 9).allSatisfy { $0.result == .succeeded })
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
            """)
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
            invocation.hasFixedEnvironment = false
        }
        #expect(outcome.message == "run 9")
        serving.close()
    }

    @Test func `a process whose environment no request uses any more is stopped`() throws {
        let serving = try ServingStage(
            """
            ready()
            for request in requests(): result(request, message=os.environ['SIZE'])
            """, limits: { $0.idle = .zero })
        func ask(_ size: Int) -> String {
            serving.ask { $0.environment = [("SIZE", Array("\(size)".utf8))] }.message
        }
        for size in 1...4 { #expect(ask(size) == "\(size)") }
        #expect(Deadline.wait { serving.stage.host.serving.count == 0 })
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

    @Test func `a process that is idle too long exits, and the next request starts another`() throws {
        let serving = try ServingStage(
            ServingStage.good + "\nnote('ended')\n", limits: { $0.idle = .milliseconds(200) })
        #expect(serving.ask(1).result == .succeeded)
        #expect(Deadline.wait { serving.started.allSatisfy(isGone) })
        #expect(serving.text(of: "ended") == "\n")
        #expect(serving.ask(2).result == .succeeded)
        #expect(serving.started.count == 2)
        serving.close()
        #expect(serving.stage.log.all == [])
    }

    @Test func `pings are answered, and a process that does not answer is terminated`() throws {
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
        #expect(good.ask(1).result == .succeeded)
        #expect(Deadline.wait { good.text(of: "pings")?.contains(#"{"type": "ping", "n": 1}"#) == true })
        #expect(good.ask(2).result == .succeeded)
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
        #expect(deaf.ask(1).result == .succeeded)
        #expect(Deadline.wait { deaf.started.allSatisfy(isGone) })
        deaf.close()
        #expect(deaf.stage.log.all == ["warning: plugin 'resize' did not answer a ping and was stopped"])
    }

    @Test func `after the maximum number of requests another process takes over`() throws {
        let serving = try ServingStage(ServingStage.good, limits: { $0.requests = 5 })
        #expect((1...12).map { serving.ask($0).result }.allSatisfy { $0 == .succeeded })
        serving.close()
        #expect(serving.started.count == 3)
        #expect(serving.stage.log.all == [])
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
        #expect(Deadline.wait { serving.text(of: "open") == "\n\n\n\n" })
        try serving.replace("ready()\nfor request in requests(): result(request, message='new')\n")
        #expect(serving.ask(5).message == "new")
        #expect(serving.text(of: "ended") == nil)
        try serving.stage.directory.write("go", "")
        #expect(Deadline.wait { outcomes.value.count == 4 })
        #expect(outcomes.value.allSatisfy { $0.message == "old" })
        #expect(Deadline.wait { serving.text(of: "ended") != nil })
        #expect(serving.ask(6).message == "new")
        #expect(serving.started.count == 2)
        serving.close()
        #expect(serving.stage.log.all == [])
    }

    @Test func `the process of a removed or replaced plugin exits when the rules are loaded again`() throws {
        for isRemoved in [true, false] {
            let serving = try ServingStage(ServingStage.good)
            #expect(serving.ask(1).result == .succeeded)
            serving.stage.host.retireOutdated()
            #expect(serving.ask(2).result == .succeeded)
            #expect(serving.started.count == 1)
            if isRemoved {
                try #require(unlink(serving.plugin.executable.description) == 0)
            } else {
                try serving.replace(ServingStage.good)
            }
            serving.stage.host.retireOutdated()
            #expect(Deadline.wait { serving.started.allSatisfy(isGone) })
            if !isRemoved { #expect(serving.ask(3).result == .succeeded) }
            serving.close()
            #expect(serving.stage.log.all == [])
        }
    }

    @Test func `the process of a removed plugin exits when another plugin is used`() throws {
        let serving = try ServingStage(ServingStage.good)
        #expect(serving.ask(1).result == .succeeded)
        let removed = serving.started
        try serving.stage.directory.directory("b")
        let text = try String(contentsOfFile: serving.plugin.executable.description, encoding: .utf8)
        let other = try serving.stage.directory.write("b/other", text)
        try #require(unlink(serving.plugin.executable.description) == 0)
        let plugin = InstalledPlugin(description: serving.plugin.description, location: other, executable: other)
        // Other plugins are checked at most once a second.
        let isEnded = Deadline.wait {
            _ = PluginHandler(plugin: plugin, host: serving.stage.host).run(serving.invocation(2))
            return removed.allSatisfy(isGone)
        }
        #expect(isEnded)
        serving.close()
    }

    @Test(arguments: [1, 2])
    func `the processes of an environment do not exceed 'parallel'`(parallel: Int) throws {
        let serving = try ServingStage(
            """
            size = os.environ['SIZE']
            mine = f'{HERE}/alive-{size}-{os.getpid()}'
            open(mine, 'w').close()
            alive = [name for name in os.listdir(HERE) if name.startswith(f'alive-{size}-')]
            if len(alive) > \(parallel): note('toomany', alive)
            ready(1)
            for request in requests(): result(request, message=size)
            os.unlink(mine)
            """, change: { $0.parallel = parallel })
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
        let serving = try ServingStage(ServingStage.good)
        try serving.stage.directory.directory("scratch/run-\(getpid())-99999/deep", mode: 0o700)
        try serving.stage.directory.directory("scratch/run-x-1", mode: 0o700)
        #expect(serving.ask().result == .succeeded)
        serving.close()
        #expect(serving.leftovers == ["run-x-1"])
    }
}
