import System

/// The rules of a run, and the expected results of each.
enum CrashRules {
    /// A rule for `created` and `modified` whose action is the recorder.
    struct Recorded {
        var name: String
        /// The directory that the rule matches, relative to the tree; empty for all.
        var directory: PathBytes
        /// Whether the rule also matches files in subdirectories.
        var isDeep = true

        func matches(_ path: PathBytes) -> Bool {
            if !directory.bytes.isEmpty { return path.isInside(directory) }
            return isDeep || !path.bytes.contains(.slash)
        }
    }

    static let recorded = [
        Recorded(name: "record", directory: ""), Recorded(name: "slow", directory: "slow"),
        Recorded(name: "failing", directory: "d"), Recorded(name: "batch", directory: "a"),
        Recorded(name: "steps", directory: "", isDeep: false),
    ]
    /// The rule that receives all events, one at a time.
    static let mirror = "mirror"
    /// The rule for files that never change.
    static let silent = "silent"

    /// Returns the rules file; the recorder appends its lines to `runs.log`.
    ///
    /// Alight does not know which process changes or removes a file while an action runs. The workers do so at any
    /// time, so the rules also report events that their own actions may have caused.
    ///
    /// - Parameters:
    ///   - recorder: The path of the recorder.
    ///   - log: The file that the recorder writes to.
    ///   - processesExisting: Whether the mirror rule processes existing files.
    /// - Returns: The rules in YAML.
    static func text(recorder: PathBytes, log: PathBytes, processesExisting: Bool) -> String {
        func exec(_ pause: Int = 0, more: Int = 0, failing: Int = 0) -> String {
            "{ exec: [\"\(recorder)\", \"\(log)\", \"\(pause)\", \"\(more)\", \"\(failing)\"] }"
        }
        return """
            defaults:
              settle: 60ms
              retry: { attempts: 30, delay: 1s }
              own_writes: report
            rules:
              - name: record
                path: hot/**
                existing: process
                concurrency: 2
                action: \(exec(more: 30))
              - name: mirror
                path: hot/**
                events: [created, modified, moved, deleted]
                existing: \(processesExisting ? "process" : "ignore")
                action: \(exec())
              - name: copies
                path: hot/**
                existing: process
                action: { use: copy, with: { to: "copies/${relative}", on_conflict: overwrite } }
              - name: slow
                path: hot/slow/**
                existing: process
                concurrency: 2
                action: \(exec(80, more: 300))
              - name: failing
                path: hot/d/**
                existing: process
                retry: { attempts: 30, delay: 200ms }
                action: \(exec(5, failing: 3))
              - name: batch
                path: hot/a/**
                existing: process
                batch: { files: 20, wait: 150ms }
                action: \(exec(20, more: 50))
              - name: steps
                path: hot/*
                existing: process
                action:
                  - \(exec(10))
                  - \(exec(more: 20))
              - name: silent
                path: unchanged/**
                action: \(exec())
            """ + "\n"
    }
}
