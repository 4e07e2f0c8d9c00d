#!/bin/bash
# Counts the lines of a file. Alight calls '@NAME@ run' with a request on standard input.
set -uo pipefail
[ "${1:-}" = run ] || { echo "usage: @NAME@ run" >&2; exit 64; }

# 65: this is not a request, and another attempt cannot help.
least=$(jq --exit-status .with.least) && [ -n "$least" ] || { echo "not a request" >&2; exit 65; }

# The environment contains exact bytes, even of names that JSON cannot represent.
[ -e "$ALIGHT_PATH" ] || { echo '{"outcome":"skipped","message":"the file no longer exists"}'; exit; }
# 74: an I/O error, worth another attempt. The last line of standard error is the message.
lines=$(wc -l <"$ALIGHT_PATH") || exit 74

if [ "$lines" -lt "$least" ]; then
    jq -cn --arg message "only $lines lines" '{outcome: "failed", message: $message, code: "too-short"}'
    exit
fi
# List the files that you write in "outputs", else the rule receives events for them:
#     output=$(printf %s "$written" | base64 -w0)
#     jq -cn --arg output "$output" '{outcome: "succeeded", outputs: [{base64: $output}]}'
jq -cn --argjson lines "$lines" '{outcome: "succeeded", message: "\($lines) lines", values: {lines: $lines}}'
