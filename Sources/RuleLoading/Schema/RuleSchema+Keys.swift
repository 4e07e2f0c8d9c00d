import FileEvents
import FileWatching
import PluginProtocol
import Rules
import Settling

extension RuleSchema {
    /// The keys of a rule.
    static let keys: [SchemaKey] = aboutFiles + aboutTime + aboutActions + aboutPrograms + aboutOrder

    private static let glob = SchemaForm.text(minimum: 1, pattern: SchemaForm.pathPattern)
    /// Relative to the root.
    private static let relativeGlob = SchemaForm.text(minimum: 1, pattern: "(?=^[^/~])\(SchemaForm.pathPattern)")

    private static let aboutFiles = [
        SchemaKey(
            "name", "Unique over all files; without one the file's name and the rule's number.",
            SchemaForm.text(minimum: 1, maximum: 200), examples: ["thumbnails"], isShared: false),
        SchemaKey("description", "A sentence for people.", SchemaForm.text(), isShared: false),
        SchemaKey(
            "enabled", "Whether the rule runs; false keeps it in the file, checked but not run.", SchemaForm.boolean,
            standard: true),
        SchemaKey(
            "path", "Which files: a glob, or a list of globs. The folder in front of the first wildcard is watched.",
            SchemaForm.oneOrMore(glob), examples: ["~/Pictures/inbox/**/*.{jpg,png}"], isShared: false),
        SchemaKey(
            "exclude", "Which of them not: globs relative to the root.", SchemaForm.list(of: relativeGlob),
            examples: [["**/drafts"]]),
        SchemaKey(
            "outputs", "What the rule's own action writes: globs relative to the root, which are left out.",
            SchemaForm.list(of: relativeGlob), examples: [["thumbs/**"]]),
        SchemaKey(
            "ignore_defaults", "Whether what programs leave while they work is left out: swap files, downloads, .git.",
            SchemaForm.boolean, standard: true),
        SchemaKey(
            "types", "Which types of file.",
            SchemaForm.list(of: SchemaForm.words(["file", "directory", "symlink", "any"]), isNonEmpty: true),
            standard: ["file"]),
        SchemaKey(
            "tree", "Whether a folder is one unit with everything in it; with 'types: [directory]'.",
            SchemaForm.boolean, standard: false),
        SchemaKey("hidden", "Whether wildcards match a leading dot.", SchemaForm.boolean, standard: false),
        SchemaKey("depth", "How many levels of folders below the root are entered.", SchemaForm.integer(0...1_000)),
        SchemaKey(
            "events", "What has to happen. Names of inotify(7) are understood.",
            SchemaForm.list(of: SchemaForm.words(EventMask.words + EventMask.inotifyWords), isNonEmpty: true),
            standard: ["created", "modified"]),
        SchemaKey(
            "where", "What has to hold of a file besides its path; all of it must.", ["$ref": "#/$defs/conditions"],
            examples: [["size": "> 1 KB", "mime": "application/pdf"]]),
        SchemaKey(
            "by", "Whether actions are told which process wrote. Alight has to run as root.", SchemaForm.boolean,
            standard: false),
        SchemaKey(
            "case", "Whether 'path' tells JPG from jpg.", SchemaForm.words(["sensitive", "insensitive"]),
            standard: "insensitive"),
        SchemaKey(
            "formerly", "Names that the rule had before: what is known under them is the rule's.",
            SchemaForm.oneOrMore(SchemaForm.text()), isShared: false),
    ]

    private static let aboutTime = [
        SchemaKey(
            "settle", "How long a file must be quiet; 5s where it is polled.", SchemaForm.duration(allowsZero: true),
            standard: "2s", examples: ["500ms", "10s"]),
        SchemaKey(
            "stable", "Equal looks that are needed besides.",
            SchemaForm.object(
                ["every": SchemaForm.duration(), "rounds": SchemaForm.integer(1...1_000)], isNonEmpty: true),
            examples: [["every": "1s", "rounds": 3]]),
        SchemaKey(
            "writers", "Whether to wait while a process has the file open for writing.",
            SchemaForm.choice(SettlePolicy.Gate.self), standard: "wait"),
        SchemaKey(
            "locks", "Whether to wait while a process has the file locked.", SchemaForm.choice(SettlePolicy.Gate.self),
            standard: "ignore"),
        SchemaKey(
            "when_held", "The time without a change after which a file that a process has open or locked is finished.",
            SchemaForm.duration(), examples: ["5m"]),
        SchemaKey(
            "ignore_partial", "Whether to wait while a file next to it shows that it is still being transferred.",
            SchemaForm.boolean, standard: true),
        SchemaKey(
            "max_wait", "After so long a file that never rests is told as it is.", SchemaForm.duration(),
            examples: ["10m"]),
        SchemaKey(
            "existing", "What becomes of files that are there when the rule first runs.",
            SchemaForm.choice(Rule.Existing.self), standard: "ignore"),
        SchemaKey(
            "missing", "What becomes of the rule when its root does not exist.", SchemaForm.choice(Rule.Missing.self),
            standard: "wait"),
        SchemaKey(
            "same_content", "Whether a rewrite with the same bytes is told.", SchemaForm.choice(Rule.Telling.self),
            standard: "report"),
        SchemaKey(
            "own_writes", "Whether what the rule's own action does to its file is told.",
            SchemaForm.choice(Rule.Telling.self), standard: "ignore"),
        SchemaKey(
            "tail", "Deliver the text that is added to a file.",
            SchemaForm.switched(["max_bytes": SchemaForm.size(atLeast: 1_000, atMost: 16_000_000)]), standard: false),
        SchemaKey(
            "batch", "One run of the action for many files.",
            SchemaForm.switched([
                "files": SchemaForm.integer(1...100_000), "wait": SchemaForm.duration(allowsZero: true),
                "max_wait": SchemaForm.duration(),
            ]), standard: false, examples: [["files": 100, "wait": "5s"]]),
        SchemaKey("backend", "How the root is watched.", SchemaForm.choice(Backend.self), standard: "auto"),
        SchemaKey("poll", "How often a polled root is looked at.", SchemaForm.duration(), standard: "10s"),
        SchemaKey(
            "catch_up", "Whether what happened while Alight did not run is told.", SchemaForm.boolean, standard: true),
    ]

    private static let aboutActions = [
        SchemaKey(
            "action", "What to do: a handler, a program, a line for a shell, or a list of them.",
            ["$ref": "#/$defs/actions"], examples: [["use": "move", "with": ["to": "/srv/archive/"]]], isShared: false),
        SchemaKey("timeout", "How long an action may take.", SchemaForm.duration(), standard: "10m"),
        SchemaKey(
            "concurrency", "How many files of this rule are worked on at once.", SchemaForm.integer(1...1_024),
            standard: 1),
        SchemaKey(
            "retry", "How often a failed job is tried, and how long it rests in between; false is one attempt.",
            SchemaForm.switched([
                "attempts": SchemaForm.integer(1...1_000), "delay": SchemaForm.duration(),
                "max_delay": SchemaForm.duration(), "on": SchemaForm.choice(RetryPolicy.Failures.self),
            ]), examples: [["attempts": 5, "delay": "10s", "max_delay": "15m"]]),
        SchemaKey(
            "on_failure", "What to do when a job has failed for good.", ["$ref": "#/$defs/actions"],
            examples: [["use": "move", "with": ["to": "/srv/quarantine/"]]]),
        SchemaKey(
            "while_busy", "What a change means to an action that runs for the file.",
            SchemaForm.choice(Rule.WhileBusy.self), standard: "coalesce"),
        SchemaKey(
            "cooldown", "The least time between two runs for one file.", SchemaForm.duration(allowsZero: true),
            standard: 0),
        SchemaKey(
            "env", "Further environment variables of programs.",
            [
                "type": "object",
                "propertyNames": ["pattern": "^(?!ALIGHT_|TMPDIR$)[A-Za-z_][A-Za-z0-9_]*$"],
                "additionalProperties": SchemaForm.template,
            ], examples: [["SITE": "https://example.org"]]),
        SchemaKey(
            "directory", "Where programs work, instead of a scratch folder.",
            SchemaForm.text(minimum: 1, pattern: SchemaForm.templatePattern)),
    ]

    private static let aboutOrder = [
        SchemaKey(
            "window", "The hours in which actions begin, in local time.",
            SchemaForm.orFalse(SchemaForm.oneOrMore(["type": "string", "pattern": .string(windowPattern)])),
            examples: ["22:00-06:00", "Mon-Fri 22:00-06:00"]),
        SchemaKey(
            "ready", "What has to hold of a file besides, before its action begins.",
            SchemaForm.orFalse(
                SchemaForm.object(
                    [
                        "done_file": SchemaForm.text(minimum: 1, pattern: "(?=^[^/~])\(SchemaForm.namePattern)"),
                        "min_age": SchemaForm.duration(), "min_size": SchemaForm.size(atLeast: 1),
                        "command": SchemaForm.command,
                    ], isNonEmpty: true)), examples: [["done_file": "${name}.done"]]),
        SchemaKey(
            "group", "Which files of a folder are handled together: those for which this text is the same.",
            SchemaForm.text(minimum: 1, pattern: "(?=.*\\$\\{)\(SchemaForm.namePattern)"), examples: ["${stem}"]),
        SchemaKey(
            "require", "The kinds of files that a group needs: extensions, or globs for names.",
            SchemaForm.list(of: SchemaForm.text(minimum: 1, pattern: "^[^/]*$"), isNonEmpty: true),
            examples: [["mkv", "nfo"]]),
        SchemaKey(
            "priority", "Of several rules with something to do, higher ones go first.",
            SchemaForm.integer(-1_000...1_000), standard: 0),
        SchemaKey(
            "stop", "Whether later rules see nothing of what this one takes.", SchemaForm.boolean, standard: false),
        SchemaKey(
            "allow_loop", "Whether the rule may write what starts it again.", SchemaForm.boolean, standard: false),
        SchemaKey(
            "tags", "Words by which 'alight run --tag' chooses rules.",
            SchemaForm.oneOrMore(
                SchemaForm.text(minimum: 1, maximum: 64, pattern: "^(?!-)[A-Za-z0-9_.-]*$"), allowsNone: true),
            examples: [["nightly"]]),
    ]

    /// `22:00-06:00`, `Mon-Fri 22:00-06:00`; days in any case.
    private static let windowPattern: String = {
        let names = ["sun(day)?", "mon(day)?", "tue(sday)?", "wed(nesday)?", "thu(rsday)?", "fri(day)?", "sat(urday)?"]
        let day = "(" + names.joined(separator: "|") + ")"
        let anyCase = day.map { $0.isLetter ? "[\($0)\($0.uppercased())]" : String($0) }.joined()
        let span = "\(anyCase)(-\(anyCase))?"
        let start = "([01]?[0-9]|2[0-3]):[0-5][0-9]"
        return "^ *(\(span)(,\(span))* +)?\(start)-(\(start)|24:00) *$"
    }()

    // MARK: - Conditions

    /// The keys of `where`.
    static let conditions = [
        SchemaKey("size", "How large it is.", SchemaForm.comparisons(of: .size), examples: ["> 1 KB", "1 KB..5 MB"]),
        SchemaKey("age", "How long ago it was changed.", SchemaForm.comparisons(of: .age), examples: ["> 7d"]),
        SchemaKey("depth", "How many folders are between the root and it.", SchemaForm.comparisons(of: .depth)),
        SchemaKey(
            "mime", "What it holds, by its content.",
            SchemaForm.oneOrMore([
                "type": "string",
                "pattern": #"^(\*|[A-Za-z0-9!#$&^_.+-]+)/(\*|[A-Za-z0-9!#$&^_.+-]+)$"#,
            ]), examples: ["application/pdf", "image/*"]),
        SchemaKey(
            "name", "Globs for its last component.",
            SchemaForm.oneOrMore(SchemaForm.text(minimum: 1, pattern: "^[^/]*$")), examples: ["IMG_*.jpg"]),
        SchemaKey(
            "path", "Globs for the path below the root, or for the whole one.", SchemaForm.oneOrMore(glob),
            examples: ["2026/**"]),
        SchemaKey(
            "regex", "A regular expression (PCRE2) that is found in its last component; its groups are ${1} and so on.",
            SchemaForm.text(minimum: 1), examples: [#"^IMG_(\d+)"#]),
        SchemaKey(
            "owner", "USER, USER:GROUP or :GROUP.",
            SchemaForm.oneOrMore(SchemaForm.text(minimum: 1, pattern: "^(?!:$)")),
            examples: ["www-data"]),
        SchemaKey(
            "by", "The program that wrote: globs for its name, or for the path of its file. Alight has to run as root.",
            SchemaForm.oneOrMore(SchemaForm.text(minimum: 1)), examples: ["rsync", ["cp", "/usr/sbin/*ftpd"]]),
        SchemaKey("any", "At least one of the list holds.", conditionList),
        SchemaKey("all", "All of the list hold.", conditionList),
        SchemaKey(
            "not", "What must not hold; of a list none may.", SchemaForm.oneOrMore(["$ref": "#/$defs/conditions"])),
    ]

    private static let conditionList = SchemaForm.list(of: ["$ref": "#/$defs/conditions"], isNonEmpty: true)
}
