import ActionAPI
import Glibc
import JSON
import OtherActions
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Notifications of `notify`, and its messages without a desktop.
struct NotifyHandlerTests {
    private let environment = ProgramEnvironment(home: "/nowhere", timeZone: nil, isRoot: false)

    /// A program that records its arguments, each followed by a bar, and the address of its bus.
    private static let standIn = """
        #!/bin/sh
        for word in "$@"; do printf '%s|' "$word"; done >"${0%/*}/arguments"
        printf '%s' "$DBUS_SESSION_BUS_ADDRESS" >"${0%/*}/bus"
        """

    private func handler(_ program: PathBytes?, bus: String? = "unix:path=/x") throws -> NotifyHandler {
        NotifyHandler(launcher: try makeLauncher(), environment: environment, bus: bus) { _ in program }
    }

    @Test func `title and body are arguments, and never markup`() throws {
        let directory = TemporaryDirectory()
        let program = try directory.write("notify-send", Self.standIn)
        let rule = ContentRule(directory.path, try handler(program))
        TestFile.write(rule.path("<b>&\\n"), "")
        let outcome = rule.run(
            "<b>&\\n",
            ["title": "--new ${name}", "body": "${relative}\nis there", "urgency": "low", "icon": "folder"])
        #expect(outcome.result == .succeeded, "\(outcome.message)")
        #expect(
            directory.text(of: "arguments")
                == "--app-name=Alight|--urgency=low|--icon=folder|--|--new <b>&\\n|&lt;b&gt;&amp;\\\\n\nis there|")
        #expect(directory.text(of: "bus") == "unix:path=/x")
    }

    @Test func `without parameters the notification shows the rule and the event`() throws {
        let directory = TemporaryDirectory()
        let program = try directory.write("notify-send", Self.standIn)
        let rule = ContentRule(directory.path, try handler(program))
        TestFile.write(rule.path("a"), "")
        #expect(rule.run("a", [:]).result == .succeeded)
        let arguments = directory.text(of: "arguments")
        #expect(arguments == "--app-name=Alight|--urgency=normal|--|r|created \(directory.path)/in/a|")
    }

    @Test func `the message names what is missing`() throws {
        let directory = TemporaryDirectory()
        func outcome(_ handler: NotifyHandler) -> Outcome { ContentRule(directory.path, handler).run("a", [:]) }
        let nowhere = outcome(try handler("/bin/true", bus: nil))
        #expect(nowhere.result == .failed)
        #expect(nowhere.message.contains("there is no desktop session"))
        let missing = outcome(try handler(nil))
        #expect(missing.result == .failed)
        #expect(missing.message == "'notify-send' is missing; install the package libnotify-bin")
    }

    @Test func `a desktop that refuses is retried, with its reason`() throws {
        let directory = TemporaryDirectory()
        let program = try directory.write("notify-send", "#!/bin/sh\necho 'no such service' >&2\nexit 1\n")
        let outcome = ContentRule(directory.path, try handler(program)).run("a", [:])
        #expect(outcome.result == .retry)
        #expect(outcome.message == "'notify-send' could not show it: no such service")
    }

    @Test func `a desktop that hangs is abandoned at a stop and at the timeout`() throws {
        let directory = TemporaryDirectory()
        let program = try directory.write("notify-send", "#!/bin/sh\nexec sleep 1000\n")
        var rule = ContentRule(directory.path, try handler(program))
        rule.timeout = .milliseconds(100)
        #expect(rule.run("a", [:]).code == "timed-out")
        rule.timeout = .seconds(60)
        rule.stop.raise()
        #expect(rule.run("a", [:]).isInterrupted)
    }

    /// Starts a separate bus and a service on it that records the notifications.
    @Test func `a notification reaches the desktop service over a real bus`() throws {
        guard let notifySend = ExecutableCheck.find("notify-send"),
            call("/usr/bin/python3", ["-c", "import dbus, gi"], in: "/").status == 0,
            ExecutableCheck.find("dbus-daemon") != nil
        else {
            print("skipped: needs dbus-daemon, notify-send, python3-dbus and python3-gi")
            return
        }
        let directory = TemporaryDirectory()
        let address = "unix:path=\(directory.path)/bus"
        let daemon = RunningProgram(
            "/usr/bin/dbus-daemon", ["--session", "--nofork", "--address=\(address)"], in: directory.path,
            output: directory.path.appending("daemon"))
        #expect(Deadline.wait { TestFile.exists(directory.path.appending("bus")) }, "\(daemon.error)")
        let service = RunningProgram(
            "/usr/bin/python3", ["\(Places.checkout)/Tests/Support/desktop.py", "\(directory.path)/shown"],
            in: directory.path,
            environment: ["DBUS_SESSION_BUS_ADDRESS": address], output: directory.path.appending("service"))
        #expect(Deadline.wait { service.output.contains("ready") || service.exitStatus() != nil }, "\(service.error)")
        let rule = ContentRule(directory.path, try handler(notifySend, bus: address))
        TestFile.write(rule.path("a \\t b"), "")
        let outcome = rule.run("a \\t b", ["title": "New file", "body": "${name}", "urgency": "critical"])
        #expect(outcome.result == .succeeded, "\(outcome.message)")
        #expect(directory.text(of: "shown") == "Alight||New file|a \\t b|2\n")
    }
}
