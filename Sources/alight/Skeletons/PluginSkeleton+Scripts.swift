// The programs in bash and Python. Each can be read from top to bottom, and needs no file of Alight's.
extension PluginSkeleton {
    var bash: String {
        """
        #!/bin/bash
        # Counts the lines of a file. Alight calls '\(name) run' with a request on standard input.
        set -uo pipefail
        [ "${1:-}" = run ] || { echo "usage: \(name) run" >&2; exit 64; }

        # 65: this is no request, and another attempt can't help.
        least=$(jq --exit-status .with.least) && [ -n "$least" ] || { echo "not a request" >&2; exit 65; }

        # The environment has exact bytes, also of names that JSON can't hold.
        [ -e "$ALIGHT_PATH" ] || { echo '{"outcome":"skipped","message":"it is gone"}'; exit; }
        # 74: an error of the disk, worth another attempt. The last line of standard error is the message.
        lines=$(wc -l <"$ALIGHT_PATH") || exit 74

        if [ "$lines" -lt "$least" ]; then
            jq -cn --arg message "only $lines lines" '{outcome: "failed", message: $message, code: "too-short"}'
            exit
        fi
        # What you write goes into "outputs", else the rule meets it as an event:
        #     output=$(printf %s "$written" | base64 -w0)
        #     jq -cn --arg output "$output" '{outcome: "succeeded", outputs: [{base64: $output}]}'
        jq -cn --argjson lines "$lines" '{outcome: "succeeded", message: "\\($lines) lines", values: {lines: $lines}}'

        """
    }

    var python: String {
        #"""
        #!/usr/bin/env python3
        """Counts the lines of a file. Alight calls it with 'run', or with 'serve' for many requests."""
        import base64
        import json
        import os
        import sys


        def handle(request):
            """Does the work for one request, and returns the response."""
            event = request["events"][0]
            # A name that isn't UTF-8 stands in base64; 'path' is only for people then.
            path = base64.b64decode(event["path_base64"]) if "path_base64" in event else os.fsencode(event["path"])
            try:
                with open(path, "rb") as file:
                    lines = sum(1 for _ in file)
            except FileNotFoundError:
                return {"outcome": "skipped", "message": "it is gone"}
            except OSError as error:
                return {"outcome": "retry", "message": error.strerror, "code": "unreadable"}
            if lines < request["with"]["least"]:
                return {"outcome": "failed", "message": f"only {lines} lines", "code": "too-short"}
            # What you write goes into "outputs", else the rule meets it as an event.
            return {"outcome": "succeeded", "message": f"{lines} lines", "values": {"lines": lines}}


        def run():
            try:
                request = json.load(sys.stdin)
            except ValueError as error:
                print(f"not a request: {error}", file=sys.stderr)
                return 65  # another attempt can't help
            print(json.dumps(handle(request)))
            return 0


        def serve():
            """Answers one line after another, until standard input ends."""
            for line in sys.stdin:
                message = json.loads(line)
                if message["type"] == "hello":
                    answer = {"type": "ready", "protocol": 1, "concurrent": 1}
                elif message["type"] == "ping":
                    answer = {"type": "pong", "n": message["n"]}
                elif message["type"] == "run":
                    try:
                        response = handle(message)
                    except Exception as error:  # one bad request must not end the others
                        response = {"outcome": "failed", "message": f"{type(error).__name__}: {error}"}
                    answer = {"type": "result", "id": message["id"], "attempt": message["attempt"], **response}
                else:
                    continue  # 'cancel' comes too late here, and what is unknown is left alone
                print(json.dumps(answer), flush=True)
            return 0


        verb = sys.argv[1] if len(sys.argv) == 2 else ""
        if verb not in ("run", "serve"):
            sys.exit("usage: \#(name) run | serve")
        sys.exit(run() if verb == "run" else serve())

        """#
    }
}
