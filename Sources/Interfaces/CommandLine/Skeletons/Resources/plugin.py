#!/usr/bin/env python3
"""Counts the lines of a file. Alight calls it with 'run', or with 'serve' for many requests."""
import base64
import json
import os
import sys


def handle(request):
    """Does the work for one request, and returns the response."""
    event = request["events"][0]
    # A name that is not UTF-8 is in path_base64; 'path' is then only for display.
    path = base64.b64decode(event["path_base64"]) if "path_base64" in event else os.fsencode(event["path"])
    try:
        with open(path, "rb") as file:
            lines = sum(1 for _ in file)
    except FileNotFoundError:
        return {"outcome": "skipped", "message": "the file no longer exists"}
    except OSError as error:
        return {"outcome": "retry", "message": error.strerror, "code": "unreadable"}
    if lines < request["with"]["least"]:
        return {"outcome": "failed", "message": f"only {lines} lines", "code": "too-short"}
    # List the files that you write in "outputs", else the rule receives events for them.
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
    sys.exit("usage: @NAME@ run | serve")
sys.exit(run() if verb == "run" else serve())
