/// The files of a plugin to begin with: one that counts the lines of a file.
struct PluginSkeleton {
    enum Language: String, CaseIterable {
        case bash, python, swift
    }

    /// Where a package in Swift finds Alight.
    enum Source {
        case folder(String)
        case address(String)
    }

    struct File {
        /// Relative to the plugin's folder.
        var path: String
        var text: String
        var isExecutable = false
    }

    let name: String
    let language: Language
    /// Of a plugin in Swift.
    let source: Source?

    var files: [File] {
        let program: [File]
        switch language {
        case .bash: program = [File(path: name, text: bash, isExecutable: true)]
        case .python: program = [File(path: name, text: python, isExecutable: true)]
        case .swift: program = swiftFiles
        }
        return program + [
            File(path: "plugin.yaml", text: description), File(path: "README.md", text: readme),
            File(path: "request.json", text: Self.request), File(path: "response.json", text: Self.response),
            File(path: "testdata/letter.txt", text: "Dear reader,\n\nthat is all.\n"),
            File(path: "test", text: test, isExecutable: true),
        ]
    }

    private var description: String {
        let run = language == .swift ? "./.build/release/\(name)" : "./\(name)"
        let serves = language != .bash
        let requires: String
        switch language {
        case .bash: requires = "requires: [jq]\n"
        case .python: requires = "requires: [python3]\n"
        case .swift: requires = ""
        }
        return """
            # What Alight has to know; docs/plugin-protocol.md of Alight says what else there is.
            name: \(name)
            version: 0.1.0
            protocol: [1]
            summary: Counts the lines of a file.
            run: \(run)
            modes: [\(serves ? "run, serve" : "run")]
            \(language == .swift ? "concurrent: 4\n" : "")idempotent: true
            raw_paths: true
            \(requires)events: [created, modified, moved]
            types: [file]
            timeout: 1m
            parameters:
              type: object
              additionalProperties: false
              properties:
                least:
                  type: integer
                  minimum: 0
                  default: 0
                  description: How many lines a file must have.

            """
    }

    private var readme: String {
        let build =
            language == .swift
            ? "Build it with `swift build -c release`; `plugin.yaml` names the program that this makes.\n\n" : ""
        return """
            # \(name)

            Counts the lines of a file. Put the folder into `plugins/` beside your rules, or into
            `~/.config/alight/plugins/`, and write a rule:

            ```yaml
            rules:
              - name: \(name)
                path: ~/inbox/*.txt
                action:
                  use: \(name)
                  with:
                    least: 1
            ```

            | parameter | default | |
            | --- | --- | --- |
            | `least` | 0 | how many lines a file must have; one that has less fails, code `too-short` |

            A file that is gone is `skipped`.

            \(build)`./test` calls it with all that may come, and with `request.json`, which has to be answered by what
            `response.json` says.

            """
    }

    private var test: String {
        let build = language == .swift ? "swift build -c release --package-path \"$folder\"\n" : ""
        return """
            #!/bin/sh
            # Whether the plugin keeps to the protocol; needs 'alight' in PATH, or its place in ALIGHT.
            set -e
            folder=$(cd "$(dirname "$0")" && pwd)
            \(build)exec "${ALIGHT:-alight}" plugins test "$folder" "$@"

            """
    }

    private static let request = """
        {
          "protocol": 1,
          "id": "01JD8Z3T1WQ2V7N0C5M4K9R6XB",
          "attempt": 1,
          "max_attempts": 5,
          "interrupted": false,
          "dry_run": false,
          "deadline": "2099-01-01T00:00:00Z",
          "rule": { "name": "letters", "file": "@SCRATCH@/rules.yaml", "line": 2 },
          "with": { "least": 1 },
          "scratch": "@SCRATCH@/.scratch",
          "steps": [],
          "events": [
            {
              "event": "created", "path": "@SCRATCH@/letter.txt", "relative": "letter.txt", "root": "@SCRATCH@",
              "origin": "live", "type": "file", "size": 27, "mtime": "2026-11-21T07:04:25Z", "mode": "0644",
              "uid": 1000, "gid": 1000, "nlink": 1, "id": "8:1:131204:0", "time": "2026-11-21T07:04:25.12Z"
            }
          ]
        }

        """

    private static let response = """
        { "outcome": "succeeded", "message": "3 lines", "values": { "lines": 3 } }

        """
}
