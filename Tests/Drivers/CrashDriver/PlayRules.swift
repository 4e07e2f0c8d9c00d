import FileEvents
import System
import TestKit

/// The rules of a play, and what each of them has to have done at the end.
enum PlayRules {
    /// A rule whose action is the recorder, for `created` and `modified`.
    struct Recorded {
        var name: String
        /// The folder that it takes, relative to the tree; empty for all.
        var folder: PathBytes
        /// Whether it takes what is in sub-folders.
        var isDeep = true

        func takes(_ path: PathBytes) -> Bool {
            if !folder.bytes.isEmpty { return path.isInside(folder) }
            return isDeep || !path.bytes.contains(.slash)
        }
    }

    static let recorded = [
        Recorded(name: "record", folder: ""), Recorded(name: "slow", folder: "slow"),
        Recorded(name: "failing", folder: "d"), Recorded(name: "batch", folder: "a"),
        Recorded(name: "steps", folder: "", isDeep: false),
    ]
    /// The rule that is told everything, one after the other.
    static let mirror = "mirror"
    /// The rule of files that nobody changes.
    static let silent = "silent"

    /// The rules file; the recorder's lines go to `runs.log`.
    ///
    /// Who changes or removes a file while a program works on it is not known. The
    /// workers do, at any time, so the rules are told of what may be their programs' own doing, too.
    ///
    /// - Parameters:
    ///   - recorder: The program.
    ///   - log: Where it writes.
    ///   - tellsWhatIsThere: Whether the mirror begins empty.
    /// - Returns: YAML.
    static func text(recorder: PathBytes, log: PathBytes, tellsWhatIsThere: Bool) -> String {
        func exec(_ rest: Int = 0, more: Int = 0, failing: Int = 0) -> String {
            "{ exec: [\"\(recorder)\", \"\(log)\", \"\(rest)\", \"\(more)\", \"\(failing)\"] }"
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
                existing: \(tellsWhatIsThere ? "process" : "ignore")
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
                path: kept/**
                action: \(exec())
            """ + "\n"
    }
}
