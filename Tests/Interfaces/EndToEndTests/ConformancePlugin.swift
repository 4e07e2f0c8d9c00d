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
    struct Fault: Sendable {
        var check: String
        /// The replacements in the script, each from and to.
        var changes: [(String, String)]
        /// The reported message.
        var words: String
        var options: [String] = []

        init(_ check: String, _ from: String, _ to: String, says words: String, _ options: [String] = []) {
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

    static let faults = [
        Fault("description", "\"protocol\": [1]", "\"protocol\": [2]", says: "it uses version 2 of the protocol"),
        Fault(
            "describe-effects", "    return {\"name\"",
            "    open(os.path.expanduser('~/seen'), 'w')\n    return {\"name\"",
            says: "home/seen' was made"),
        Fault(
            "describe-effects", "\"concurrent\": 2,\n", "\"version\": str(time.time_ns()),\n",
            says: "it printed two different descriptions"),
        Fault(
            "parameters", "\"properties\": {}",
            "\"properties\": {\"to\": {\"type\": \"string\"}}, \"required\": [\"to\"]",
            says: "parameter 'to' is missing"),
        Fault(
            "plain-name", load, "    return {\"outcome\": \"failed\", \"message\": \"never\"}\n" + load,
            says: "failed, \"never\""),
        Fault("plain-name", load, "    os.kill(os.getpid(), signal.SIGSEGV)\n" + load, says: "killed by signal 11"),
        Fault("plain-name", load, "    time.sleep(600)\n" + load, says: "no answer within 2 s", ["--timeout", "2s"]),
        Fault(
            "hostile-name", load, "    if b'\\n' in path: return {\"outcome\": \"failed\"}\n" + load,
            says: "failed, and for a plain name succeeded"),
        Fault(
            "raw-name", "base64.b64decode(event[\"path_base64\"]) if \"path_base64\" in event else ", "",
            says: "skipped, \"gone\", and for a plain name succeeded"),
        Fault(
            "empty-file", "    with open(path + b\".tmp\"", "    content[0]\n    with open(path + b\".tmp\"",
            says: "status 1"),
        Fault("vanished-file", "if not os.path.exists(path):", "if False:", says: "FileNotFoundError"),
        Fault(
            "same-id-twice", "file.write(content)",
            "file.write((open(path + b'.out', 'rb').read() if os.path.exists(path + b'.out') else b'') + content)",
            says: "was changed"),
        Fault("one-object", "    print(json.dumps(answer))", "    print('done')", says: "is not JSON"),
        Fault(
            "one-object", "    print(json.dumps(answer))", "    print(json.dumps(answer), json.dumps(answer))",
            says: "is not JSON"),
        Fault(
            "exit-status", "print(json.dumps(answer))\n    sys.exit(0)", "print(json.dumps(answer))\n    sys.exit(3)",
            says: "exits with 3"),
        Fault("garbage", "sys.exit(65)", "sys.exit(0 if text else 65)", says: "it reports success"),
        Fault("empty-request", "sys.exit(65)", "sys.exit(65 if text else 0)", says: "it reports success"),
        Fault(
            "unknown-members", load, "    if 'future' in request: return {\"outcome\": \"failed\"}\n" + load,
            says: "it answers failed"),
        Fault("writes", out, "    open(os.path.expanduser('~/log'), 'w')\n" + out, says: "home/log' was made"),
        Fault(
            "writes", out, "    open(os.path.expanduser('~/l'), 'w')\n    os.unlink(os.path.expanduser('~/l'))\n" + out,
            says: "home/l' existed for a while"),
        Fault(
            "writes", out, "    open(path, 'wb').write(b'x'); open(path, 'wb').write(content)\n" + out,
            says: "was written to"),
        Fault(
            "sigterm", "def describe():", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ndef describe():",
            says: "it kept running for 3 s"),
        Fault(
            "serve-hello", "\"ready\", \"protocol\": 1", "\"ready\", \"protocol\": 7",
            says: "doesn't contain \"protocol\":1"),
        Fault(
            "serve-hello", "\"protocol\": 1, \"concurrent\": 2", "\"protocol\": 1, \"concurrent\": 1e30",
            says: "is not a whole number from 1 to 256"),
        Fault(
            "serve-hello", "        if message[\"type\"] == \"hello\":\n",
            "        while True: print('{\"type\":\"other\"}')\n        if message[\"type\"] == \"hello\":\n",
            says: "'ready' within 10 s"),
        Fault(
            "serve-hello", "    for line in sys.stdin:", "    sys.exit('no')\n    for line in sys.stdin:",
            says: "closed its output: no"),
        Fault("serve-requests", ", \"attempt\": message[\"attempt\"]", "", says: "doesn't contain \"attempt\":1"),
        Fault(
            "serve-requests", "print(json.dumps(answer), flush=True)",
            "print(json.dumps(answer), *(['\\n' + json.dumps(answer)] if 'id' in answer else []), flush=True)",
            says: "a second result for the id"),
        Fault(
            "serve-hello", "        print(json.dumps(answer), flush=True)",
            "        print('done')\n        print(json.dumps(answer), flush=True)", says: "not a message: \"done\""),
        Fault(
            "serve-unknown", "        else:\n            continue",
            "        elif message[\"type\"] != \"cancel\":\n            sys.exit('unknown type')\n        else:\n            continue",
            says: "unknown type"),
        Fault(
            "serve-cancel", "        else:\n            continue",
            "        elif message[\"type\"] == \"cancel\":\n            sys.exit('cancelled')\n        else:\n            continue",
            says: "cancelled"),
        Fault("serve-end", "    sys.exit(0)\nif sys", "    sys.exit(4)\nif sys", says: "status 4"),
        Fault("serve-end", "    sys.exit(0)\nif sys", "    time.sleep(600)\nif sys", says: "still running after 3 s"),
    ]
}
