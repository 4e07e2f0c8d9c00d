/// A plugin in Python that follows the protocol, and changes that make it violate the protocol.
enum ConformancePlugin {
    static let text = #"""
        #!/usr/bin/env python3
        import base64, json, os, signal, sys, time
        PARAMETERS = {"type": "object", "properties": {}}
        def describe():
            return {"name": "model", "protocol": [1], "raw_paths": True, "modes": ["run", "serve"], "concurrent": 2,
                    "parameters": PARAMETERS}
        def handle(request):
            event = request["events"][0]
            path = base64.b64decode(event["path_base64"]) if "path_base64" in event else os.fsencode(event["path"])
            if not os.path.exists(path):
                return {"outcome": "skipped", "message": "gone"}
            content = open(path, "rb").read()
            with open(path + b".tmp", "wb") as file: file.write(content)
            os.rename(path + b".tmp", path + b".out")
            return {"outcome": "succeeded", "outputs": [{"base64": base64.b64encode(path + b".out").decode()}]}
        def serve():
            for line in sys.stdin:
                message = json.loads(line)
                if message["type"] == "hello":
                    answer = {"type": "ready", "protocol": 1, "concurrent": 2}
                elif message["type"] == "ping":
                    answer = {"type": "pong", "n": message["n"]}
                elif message["type"] == "run":
                    answer = {"type": "result", "id": message["id"], "attempt": message["attempt"], **handle(message)}
                else:
                    continue
                print(json.dumps(answer), flush=True)
            sys.exit(0)
        if sys.argv[1] == "describe":
            print(json.dumps(describe()))
        elif sys.argv[1] == "serve":
            serve()
        else:
            text = sys.stdin.read()
            try:
                request = json.loads(text)
            except ValueError:
                sys.exit(65)
            answer = handle(request)
            print(json.dumps(answer))
            sys.exit(0)
        """# + "\n"

    /// One violation, and the one check that must detect it.
    struct Violation: Sendable {
        var check: String
        /// The replacements in the script, each from and to.
        var changes: [(String, String)]
        /// The reported message.
        var words: String
        var options: [String] = []

        init(_ check: String, _ from: String, _ to: String, reports words: String, _ options: [String] = []) {
            self.check = check
            changes = [(from, to)]
            self.words = words
            self.options = options
        }

        var text: String {
            changes.reduce(ConformancePlugin.text) { text, change in
                precondition(text.contains(change.0), "'\(change.0)' is not in the model")
                return text.replacing(change.0, with: change.1)
            }
        }
    }

    private static let load = "    content = open"
    private static let answer = "    print(json.dumps(answer))"

    static let violations = [
        Violation(
            "description", "\"protocol\": [1]", "\"protocol\": [2]", reports: "it uses version 2 of the protocol"),
        Violation(
            "plain-name", load, "    return {\"outcome\": \"failed\", \"message\": \"never\"}\n" + load,
            reports: "failed, \"never\""),
        Violation("plain-name", load, "    os.kill(os.getpid(), signal.SIGSEGV)\n" + load, reports: "signal 11"),
        Violation("plain-name", load, "    time.sleep(600)\n" + load, reports: "2s", ["--timeout", "2s"]),
        Violation("plain-name", answer, "    print('done')", reports: "is not JSON"),
        Violation(
            "plain-name", answer, "    print(json.dumps(answer), json.dumps(answer))", reports: "is not JSON"),
        Violation(
            "plain-name", "print(json.dumps(answer))\n    sys.exit(0)", "print(json.dumps(answer))\n    sys.exit(3)",
            reports: "status 3"),
        Violation(
            "hostile-name", load, "    if b'\\n' in path: return {\"outcome\": \"failed\"}\n" + load, reports: "failed"),
        Violation(
            "raw-name", "base64.b64decode(event[\"path_base64\"]) if \"path_base64\" in event else ", "",
            reports: "skipped, \"gone\""),
        Violation(
            "empty-file", "    with open(path + b\".tmp\"", "    content[0]\n    with open(path + b\".tmp\"",
            reports: "IndexError"),
        Violation("vanished-file", "if not os.path.exists(path):", "if False:", reports: "FileNotFoundError"),
        Violation("garbage", "sys.exit(65)", "sys.exit(0)", reports: "succeeded"),
        Violation(
            "unknown-members", load,
            "    if type(request.get('future')) is dict: return {\"outcome\": \"failed\"}\n" + load,
            reports: "failed"),
        Violation(
            "large-request", "sys.stdin.read()", "os.read(0, 1 << 16).decode(errors='replace')", reports: "status 65"),
        Violation(
            "sigterm", "def describe():", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ndef describe():",
            reports: "it kept running for 3s"),
        Violation("serve", "\"ready\", \"protocol\": 1", "\"ready\", \"protocol\": 7", reports: "version 7"),
        Violation(
            "serve", "        if message[\"type\"] == \"hello\":\n",
            "        while True: print('{\"type\":\"other\"}')\n        if message[\"type\"] == \"hello\":\n",
            reports: "too many unknown messages"),
        Violation(
            "serve", "    for line in sys.stdin:", "    sys.exit('no')\n    for line in sys.stdin:",
            reports: "exited with status 1 before it was ready: no"),
        Violation("serve", "== \"ping\"", "== \"pings\"", reports: "did not answer a ping"),
        Violation(
            "serve", "**handle(message)}", "\"outcome\": \"failed\", \"message\": \"not here\"}", reports: "not here"),
        Violation(
            "serve", "    sys.exit(0)\nif sys", "    time.sleep(600)\nif sys", reports: "still running 3s after"),
    ]
}
