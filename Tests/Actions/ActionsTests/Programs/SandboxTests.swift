import ActionAPI
import Foundation
import PluginProtocol
import Plugins
import Programs
import Rules
import System
import Testing

/// Access of a confined program on the running kernel.
struct SandboxTests {
    static let hasLandlock = SandboxSupport.landlock > 0

    let stage: Stage

    init() throws {
        stage = try Stage()
        for name in ["in", "out", "other"] { try stage.directory.directory(name) }
        for name in ["in/a", "out/b", "other/c"] { try stage.directory.write(name, "text", mode: 0o644) }
    }

    func path(_ name: String) -> PathBytes { stage.directory.path.appending(name) }

    func run(
        _ script: String, event: String = "in/a", read: [String]? = nil, write: [String]? = nil, network: Bool = true,
        _ change: (inout Invocation) -> Void = { _ in }
    ) -> Outcome {
        stage.run(.shell(script)) { invocation in
            Stage.use(path: path(event), in: &invocation)
            var sandbox = Sandbox()
            sandbox.read = read.map { $0.map { Template(literal: path($0).description) } }
            sandbox.write = write.map { $0.map { Template(literal: path($0).description) } }
            sandbox.allowsNetwork = network
            invocation.confinement.sandbox = sandbox
            invocation.environment = [("T", stage.directory.path.bytes)]
            change(&invocation)
        }
    }

    /// Returns the lines of the script that fail.
    func refused(_ lines: [String], read: [String]? = nil, write: [String]? = nil, event: String = "in/a") -> [String] {
        let tries = lines.map { "( \($0) ) >/dev/null 2>/dev/null || echo '\($0)'" }.joined(separator: "\n")
        let outcome = run(tries, event: event, read: read, write: write)
        return outcome.log.split(separator: "\n").map(String.init)
    }

    // MARK: - Files

    @Test(.enabled(if: hasLandlock)) func `a program can access what is granted and what it needs, and nothing else`() {
        let allowed = [
            "cat \"$ALIGHT_PATH\"", "cat $T/out/b", "echo x >$T/out/new", "mkdir $T/out/d", "mv $T/out/new $T/out/d/",
            "rm -r $T/out/d", "echo x >f", "mkdir \"$TMPDIR/d\"", "cat /etc/passwd", "cat /dev/null", "echo >/dev/null",
            "head -c1 /dev/urandom", "ls /usr", "python3 -c 1", "cat /proc/cpuinfo", "echo x >/dev/stderr",
            "ln -s x $T/out/l", "stat $T/other/c",
        ]
        let forbidden = [
            "echo x >>\"$ALIGHT_PATH\"", "rm \"$ALIGHT_PATH\"", "ls $T/in", "cat $T/other/c", "ls $T/other",
            "echo x >$T/other/c", "echo x >$T/other/d", "mv $T/out/b $T/other/", "ln $T/other/c $T/out/c",
            "cat /proc/1/status", "ls /", "ls /root", "mkdir /tmp/alight-sandbox-$$", "touch /etc/alight-sandbox",
        ]
        #expect(refused(allowed + forbidden, write: ["out"]) == forbidden)
        #expect(stage.directory.text(of: "in/a") == "text" && stage.directory.text(of: "other/c") == "text")
    }

    @Test(.enabled(if: hasLandlock)) func `a readable path can be executed and not changed`() throws {
        try stage.directory.write("other/tool", "#!/bin/sh\n")
        let forbidden = ["echo x >$T/other/c", "rm $T/other/c", "echo x >$T/out/new"]
        #expect(refused(["cat $T/other/c", "ls $T/other", "$T/other/tool"] + forbidden, read: ["other"]) == forbidden)
        // Written files cannot be executed: a program must not turn its input into another program.
        let writing = ["cp /bin/true $T/out/t; chmod 755 $T/out/t; $T/out/t"]
        #expect(refused(writing, write: ["out"]) == writing)
        // The same applies if neither list has a path.
        #expect(refused(["cat $T/other/c", "echo x >f"], read: []) == ["cat $T/other/c"])
    }

    @Test(.enabled(if: hasLandlock)) func `a name that ends in a link does not open the link's target`() throws {
        symlink("../other/c", path("in/l").description)
        for access in [\Sandbox.read, \Sandbox.write] {
            let outcome = run("cat \"$ALIGHT_PATH\" || echo x >>\"$ALIGHT_PATH\" || echo refused", event: "in/l") {
                $0.confinement.sandbox?[keyPath: access] = [Template("${path}")].compactMap(\.self)
            }
            #expect(outcome.log.contains("refused"), "\(outcome.log)")
        }
        #expect(stage.directory.text(of: "other/c") == "text")
    }

    @Test(.enabled(if: hasLandlock && geteuid() == 0)) func `root keeps capabilities for files and users only`() {
        let outcome = run(
            "while read -r name value; do case $name in CapEff:|CapBnd:) echo $value; esac; done </proc/self/status",
            write: ["out"])
        // chown, dac_override, dac_read_search, fowner, fsetid, setgid, setuid.
        #expect(
            outcome.log.split(separator: "\n") == [
                "00000000000000df", "00000000000000df",
            ], "\(outcome.log)")
    }

    @Test(.enabled(if: hasLandlock)) func `a program outside the system directories can run, with its interpreter`()
        throws
    {
        try stage.directory.directory("tools")
        let interpreter = path("tools/sh")
        try Data(contentsOf: URL(fileURLWithPath: "/bin/sh")).write(to: URL(fileURLWithPath: interpreter.description))
        try #require(chmod(interpreter.description, 0o755) == 0)
        let script = try stage.directory.write("tool", "#! \(interpreter) -e\necho ran\n")
        let outcome = stage.run(.exec([Template(literal: script.description)])) {
            $0.confinement.sandbox = Sandbox()
            $0.confinement.sandbox?.read = []
        }
        #expect(outcome.log == "ran\n", "\(outcome)")
    }

    @Test(.enabled(if: hasLandlock)) func `a plugin can read its own directory, and nothing beside it`() throws {
        try stage.directory.directory("plugins/tool")
        try stage.directory.write("plugins/beside", "secret", mode: 0o644)
        try stage.directory.write("plugins/tool/data", "mine", mode: 0o644)
        let executable = try stage.directory.write(
            "plugins/tool/tool",
            "#!/bin/sh\ncd \"${0%/*}\"; test \"$(cat data)\" = mine && ! cat ../beside 2>/dev/null && exit 0; exit 64\n"
        )
        let plugin = InstalledPlugin(
            description: PluginDescription(name: "tool", version: "1", parameters: nil),
            location: executable.parent, executable: executable)
        let outcome = PluginHandler(plugin: plugin, host: stage.host).run(
            stage.invocation {
                $0.confinement.sandbox = Sandbox()
                $0.confinement.sandbox?.write = []
            })
        #expect(outcome.result == .succeeded, "\(outcome)")
    }

    @Test(.enabled(if: hasLandlock)) func `in a batch all files can be read, and paths are expanded for each`() throws {
        try stage.directory.write("in/b", "more", mode: 0o644)
        try stage.directory.write("in/c", "none", mode: 0o644)
        let invocations = ["in/a", "in/b"].map { name in
            stage.invocation { invocation in
                Stage.use(path: path(name), in: &invocation)
                invocation.batch = 10
                var sandbox = Sandbox()
                sandbox.write = [Template("\(stage.directory.path)/out/${name}")].compactMap(\.self)
                invocation.confinement.sandbox = sandbox
            }
        }
        try FileManager.default.removeItem(atPath: path("out/b").description)
        for name in ["out/a", "out/b"] { try stage.directory.directory(name) }
        let script = """
            cd \(stage.directory.path)
            cat in/a in/b; echo x >out/a/x; echo x >out/b/x; cat in/c 2>/dev/null || echo closed
            """
        let registry = HandlerRegistry(builtIn: [], discovery: stage.discovery())
        let action = Action(.shell(script), location: SourcePosition(file: "rules.yaml", line: 3, column: 1))
        let outcomes = ActionRunner(registry: registry).runBlocking(action, invocations)
        #expect(outcomes.count == 2)
        #expect(outcomes.first?.log.hasPrefix("textmore") == true)
        #expect(outcomes.first?.log.hasSuffix("closed\n") == true)
        #expect(stage.directory.text(of: "out/a/x") == "x\n" && stage.directory.text(of: "out/b/x") == "x\n")
    }

    @Test(.enabled(if: hasLandlock)) func `a link in the watched directory grants no access to its target`() throws {
        symlink("\(path("other/c"))", "\(path("in/link"))")
        let line = "cat \"$ALIGHT_PATH\""
        #expect(refused([line], read: [], event: "in/link") == [line])
    }

    @Test(.enabled(if: hasLandlock)) func `a missing path fails the start of the program`() {
        let outcome = run("echo ran", write: ["nowhere"])
        #expect(outcome.result == .failed && outcome.code == "cannot-start")
        #expect(
            outcome.message
                == "the shell command: cannot add '\(path("nowhere"))' to its sandbox: No such file or directory")
    }

    @Test(arguments: ["", "..", "."])
    func `a placeholder that would open another directory fails the job`(value: String) throws {
        let template = try #require(Template("/srv/${match.x}"))
        let outcome = run("echo ran") {
            $0.confinement.sandbox?.write = [template]
            $0.captures.named["x"] = Array(value.utf8)
        }
        #expect(outcome.result == .failed && outcome.code == "cannot-start")
        #expect(outcome.message.contains("has a placeholder that is empty, '.' or '..'"), "\(outcome.message)")
    }

    @Test(.enabled(if: SandboxSupport.landlock >= 6)) func `a confined program cannot signal other processes`() {
        let outcome = run("kill -0 \(getpid()) 2>/dev/null || echo refused; sleep 60 & kill $!; echo own", read: [])
        #expect(outcome.log == "refused\nown\n")
    }

    @Test(.enabled(if: !hasLandlock)) func `without Landlock nothing runs, unless the sandbox is optional`() {
        let outcome = run("echo ran", read: [])
        #expect(outcome.result == .failed && outcome.code == "cannot-start")
        #expect(outcome.message.contains("cannot confine it to the files of 'sandbox': Landlock:"))
        #expect(run("echo ran", read: []) { $0.confinement.sandbox?.isRequired = false }.log == "ran\n")
    }

    /// Writes to the path in `text`, which has placeholders, and returns the outcome.
    func write(_ text: String, event: String) -> Outcome {
        run("echo x >\"$T/$TO/new\"", event: event) { invocation in
            invocation.confinement.sandbox?.write = [
                Template("\(stage.directory.path)/\(text)")
            ].compactMap(\.self)
            invocation.environment.append(
                ("TO", Array(text.replacing("${name}", with: event.dropFirst(3)).utf8)))
        }
    }

    @Test(.enabled(if: hasLandlock)) func `a placeholder cannot lead out through a symbolic link on its path`() throws {
        for name in ["out/real/x", "out/new/deep/x", "other/deep/x"] { try stage.directory.directory(name) }
        try #require(symlink("../other", path("out/away").description) == 0)
        try #require(symlink("real", path("out/near").description) == 0)
        try #require(symlink("nowhere", path("out/dangling").description) == 0)
        try #require(symlink("out", path("linked").description) == 0)
        let away = write("out/${name}/deep/x", event: "in/away")
        #expect(away.result == .failed && away.code == "cannot-start")
        let reason =
            "cannot add '\(path("out/away/deep/x"))' to its sandbox: it leads out of '\(path("out"))' through "
            + "a symbolic link"
        #expect(away.message.contains(reason), "\(away.message)")
        #expect(write("out/${name}/deep/x", event: "in/dangling").result == .failed)
        #expect(write("linked/${name}", event: "in/away").result != .succeeded, "the last name is not followed")
        #expect(listing(of: "other") == ["c", "deep", "deep/x"])
        for (text, event) in [
            ("out/${name}/x", "in/near"), ("out/${name}/deep/x", "in/new"), ("linked/${name}/deep", "in/new"),
        ] {
            let outcome = write(text, event: event)
            #expect(outcome.result == .succeeded, "\(outcome)")
        }
    }

    private func listing(of name: String) -> [String] {
        ((try? FileManager.default.subpathsOfDirectory(atPath: path(name).description)) ?? []).sorted()
    }

    // MARK: - Network

    static let sockets = """
        import socket, ctypes
        for name in ['AF_INET', 'AF_INET6', 'AF_NETLINK', 'AF_PACKET', 'AF_VSOCK', 'AF_UNIX']:
            for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW]:
                try: socket.socket(getattr(socket, name), kind).close(); print(name)
                except OSError as error:
                    if name == 'AF_UNIX': print(error)
        a, b = socket.socketpair()
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.syscall(425, 1, None), ctypes.get_errno())
        """

    @Test(.enabled(if: SandboxSupport.canShutOffNetwork), arguments: [false, true])
    func `without a network only sockets of this machine are available`(confinesFiles: Bool) throws {
        guard !confinesFiles || Self.hasLandlock else { return }
        try stage.directory.write("in/sockets.py", Self.sockets, mode: 0o644)
        let outcome = run(
            "python3 -S \"$ALIGHT_PATH\"", event: "in/sockets.py", read: confinesFiles ? [] : nil, network: false)
        #expect(outcome.log == "AF_UNIX\nAF_UNIX\nAF_UNIX\n-1 \(ENOSYS)\n", "\(outcome)")
    }

    @Test func `with a network a confined program can use it`() throws {
        guard Self.hasLandlock else { return }
        let script =
            "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind((\"127.0.0.1\", 0)); print(1)"
        #expect(run("python3 -Sc '\(script)'", read: []).log == "1\n")
    }

    @Test(.enabled(if: SandboxSupport.canShutOffNetwork)) func `children have no network either`() {
        let script = "import socket\ntry: socket.socket()\nexcept OSError as e: print(e.errno)"
        #expect(run("(setsid python3 -Sc '\(script)' &) | cat", network: false).log == "\(EAFNOSUPPORT)\n")
    }

    // MARK: - Timeout

    @Test(.enabled(if: hasLandlock)) func `a timeout terminates all descendants of a confined program`() throws {
        let stage = try Stage(grace: .milliseconds(200))
        var processes: [pid_t] = []
        for timeout in [2, 10, 60] where processes.count < 5 {
            try? FileManager.default.removeItem(atPath: "\(stage.directory.path)/ids")
            let program = ["/usr/bin/python3", "-Sc", LeftoverTests.escape, stage.directory.path.description, "stay"]
            let outcome = stage.run(.exec(program.map { Template(literal: $0) })) {
                $0.timeout = .seconds(timeout)
                $0.confinement.sandbox = Sandbox()
                $0.confinement.sandbox?.write = [Template(literal: stage.directory.path.description)]
                $0.confinement.sandbox?.allowsNetwork = false
            }
            #expect(outcome.message.contains("took longer"))
            processes = stage.directory.processes(in: "ids")
        }
        #expect(processes.count == 5 && processes.allSatisfy(isGone))
    }
}
