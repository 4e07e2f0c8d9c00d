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
    private static let out = "    return {\"outcome\": \"succeeded\""

    static let violations = [
        Violation(
            "description", "\"protocol\": [1]", "\"protocol\": [2]", reports: "it uses version 2 of the protocol"),
        Violation(
            "describe-effects", "    return {\"name\"",
            "    open(os.path.expanduser('~/seen'), 'w')\n    return {\"name\"",
            reports: "home/seen' was made"),
        Violation(
            "describe-effects", "\"concurrent\": 2,\n", "\"version\": str(time.time_ns()),\n",
            reports: "it printed two different descriptions"),
        Violation(
            "parameters", "\"properties\": {}",
            "\"properties\": {\"to\": {\"type\": \"string\"}}, \"required\": [\"to\"]",
            reports: "parameter 'to' is missing"),
        Violation(
            "plain-name", load, "    return {\"outcome\": \"failed\", \"message\": \"never\"}\n" + load,
            reports: "failed, \"never\""),
        Violation(
            "plain-name", load, "    os.kill(os.getpid(), signal.SIGSEGV)\n" + load, reports: "killed by signal 11"),
        Violation(
            "plain-name", load, "    time.sleep(600)\n" + load, reports: "no answer within 2 s", ["--timeout", "2s"]),
        Violation(
            "hostile-name", load, "    if b'\\n' in path: return {\"outcome\": \"failed\"}\n" + load,
            reports: "failed, and for a plain name succeeded"),
        Violation(
            "raw-name", "base64.b64decode(event[\"path_base64\"]) if \"path_base64\" in event else ", "",
            reports: "skipped, \"gone\", and for a plain name succeeded"),
        Violation(
            "empty-file", "    with open(path + b\".tmp\"", "    content[0]\n    with open(path + b\".tmp\"",
            reports: "status 1"),
        Violation("vanished-file", "if not os.path.exists(path):", "if False:", reports: "FileNotFoundError"),
        Violation(
            "same-id-twice", "file.write(content)",
            "file.write((open(path + b'.out', 'rb').read() if os.path.exists(path + b'.out') else b'') + content)",
            reports: "was changed"),
        Violation("one-object", "    print(json.dumps(answer))", "    print('done')", reports: "is not JSON"),
        Violation(
            "one-object", "    print(json.dumps(answer))", "    print(json.dumps(answer), json.dumps(answer))",
            reports: "is not JSON"),
        Violation(
            "exit-status", "print(json.dumps(answer))\n    sys.exit(0)", "print(json.dumps(answer))\n    sys.exit(3)",
            reports: "exits with 3"),
        Violation("garbage", "sys.exit(65)", "sys.exit(0 if text else 65)", reports: "it reports success"),
        Violation("empty-request", "sys.exit(65)", "sys.exit(65 if text else 0)", reports: "it reports success"),
        Violation(
            "unknown-members", load, "    if 'future' in request: return {\"outcome\": \"failed\"}\n" + load,
            reports: "it answers failed"),
        Violation("writes", out, "    open(os.path.expanduser('~/log'), 'w')\n" + out, reports: "home/log' was made"),
        Violation(
            "writes", out, "    open(os.path.expanduser('~/l'), 'w')\n    os.unlink(os.path.expanduser('~/l'))\n" + out,
            reports: "home/l' existed for a while"),
        Violation(
            "writes", out, "    open(path, 'wb').write(b'x'); open(path, 'wb').write(content)\n" + out,
            reports: "was written to"),
        Violation(
            "sigterm", "def describe():", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ndef describe():",
            reports: "it kept running for 3 s"),
        Violation(
            "serve-hello", "\"ready\", \"protocol\": 1", "\"ready\", \"protocol\": 7",
            reports: "doesn't contain \"protocol\":1"),
        Violation(
            "serve-hello", "\"protocol\": 1, \"concurrent\": 2", "\"protocol\": 1, \"concurrent\": 1e30",
            reports: "is not a whole number from 1 to 256"),
        Violation(
            "serve-hello", "        if message[\"type\"] == \"hello\":\n",
            "        while True: print('{\"type\":\"other\"}')\n        if message[\"type\"] == \"hello\":\n",
            reports: "'ready' within 10 s"),
        Violation(
            "serve-hello", "    for line in sys.stdin:", "    sys.exit('no')\n    for line in sys.stdin:",
            reports: "closed its output: no"),
        Violation(
            "serve-requests", ", \"attempt\": message[\"attempt\"]", "", reports: "doesn't contain \"attempt\":1"),
        Violation(
            "serve-requests", "print(json.dumps(answer), flush=True)",
            "print(json.dumps(answer), *(['\\n' + json.dumps(answer)] if 'id' in answer else []), flush=True)",
            reports: "a second result for the id"),
        Violation(
            "serve-hello", "        print(json.dumps(answer), flush=True)",
            "        print('done')\n        print(json.dumps(answer), flush=True)", reports: "not a message: \"done\""),
        Violation(
            "serve-unknown", "        else:\n            continue",
            "        elif message[\"type\"] != \"cancel\":\n            sys.exit('unknown type')\n        else:\n            continue",
            reports: "unknown type"),
        Violation(
            "serve-cancel", "        else:\n            continue",
            "        elif message[\"type\"] == \"cancel\":\n            sys.exit('cancelled')\n        else:\n            continue",
            reports: "cancelled"),
        Violation("serve-end", "    sys.exit(0)\nif sys", "    sys.exit(4)\nif sys", reports: "status 4"),
        Violation(
            "serve-end", "    sys.exit(0)\nif sys", "    time.sleep(600)\nif sys", reports: "still running after 3 s"),
    ]
}
