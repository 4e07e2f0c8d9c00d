import FileEvents
import Globbing
import JSON
import Rules
import System

typealias RuleKey = Key<RuleDecoder, DecodedRule>

// The keys of a rule, by subject.
extension RuleDecoder {
    static let keys = KeyTable(
        aboutFiles + aboutSettling + aboutEvents + aboutActions + aboutPrograms + aboutOrder, over: DecodedRule())

    /// The keys that are also allowed in `defaults`.
    static let sharedKeys = KeyTable(keys.keys.filter(\.isShared))

    /// The rule without any keys, which has the defaults.
    private static let initial = DecodedRule().rule

    static let glob = SchemaForm.text(minimum: 1, pattern: SchemaForm.pathPattern)
    /// Globs relative to the root.
    private static let relativeGlobs = Form<RuleDecoder, [Glob]>(
        "list of globs",
        SchemaForm.list(of: SchemaForm.text(minimum: 1, pattern: "(?=^[^/~])\(SchemaForm.pathPattern)"))
    ) { $0.relativeGlobs($1) }

    private static let aboutFiles: [RuleKey] = [
        Key(
            "name", "The name of the rule, unique across all files; without it, the path identifies the rule.",
            .unread("string", SchemaForm.text(minimum: 1, maximum: 200)), examples: ["thumbnails"], isShared: false
        ) { _, _ in },
        Key(
            "description", "A description of the rule.", Form("string", SchemaForm.text()) { $0.text($1) },
            isShared: false, into: \.rule.summary),
        Key("enabled", "Whether the rule runs; a disabled rule is still checked.", .boolean, into: \.isEnabled),
        Key(
            "path", "The files to match. The directory before the first wildcard is the root, which is watched.",
            .unread("glob or list of globs", SchemaForm.oneOrMore(glob)), examples: ["~/Pictures/inbox/**/*.{jpg,png}"],
            isShared: false
        ) { _, _ in },
        Key(
            "exclude", "The files to exclude: globs relative to the root.", relativeGlobs, examples: [["**/drafts"]],
            into: \.exclude),
        Key(
            "outputs", "The files that the rule's own action writes, to exclude them: globs relative to the root.",
            relativeGlobs, examples: [["thumbs/**"]], into: \.outputs),
        Key(
            "ignore_defaults", "Whether to exclude temporary files of programs: swap files, partial downloads, .git.",
            .boolean, into: \.ignoresDefaults),
        Key(
            "types", "The file types to match: `file`, `directory`, `symlink`, `any`.",
            Form("list", SchemaForm.list(of: SchemaForm.words(typeNames), isNonEmpty: true)) { $0.typeWords($1) },
            standard: .array(initial.types.map { .string($0.rawValue) })
        ) {
            $0.typeWords = $1
            $0.rule.types = $1.reduce(into: []) { $0.formUnion($1.types) }
        },
        Key(
            "tree", "Whether a directory and its contents are one unit; requires `types: [directory]`.", .boolean,
            into: \.rule.settle.isTree),
        Key("hidden", "Whether wildcards match a leading dot.", .boolean, into: \.globOptions.matchesHidden),
        Key(
            "depth", "How many levels of directories below the root are watched.", .integer(0...1_000),
            into: \.rule.filter.depth),
        Key(
            "case", "Whether `path` distinguishes JPG from jpg: `sensitive` or `insensitive`.",
            Form("word", SchemaForm.words(["sensitive", "insensitive"])) {
                $0.word($1, of: ["sensitive", "insensitive"], noun: "choices")
            }, standard: "insensitive"
        ) { $0.globOptions.isCaseSensitive = $1 == "sensitive" },
        Key(
            "where", "Conditions on a file in addition to its path; all of them must be true.",
            Form("mapping", ["$ref": "#/$defs/conditions"]) { $0.condition($1) },
            examples: [["size": "> 1 KB", "mime": "application/pdf"]], into: \.rule.condition),
        Key(
            "by", "Whether actions receive the process that wrote the file. Alight must run as root.", .boolean,
            into: \.rule.reportsWriter),
        Key(
            "formerly", "Former names of the rule, whose state and jobs it takes over.",
            .unread("string or list of strings", SchemaForm.oneOrMore(SchemaForm.text())), isShared: false
        ) { _, _ in },
    ]

    private static let aboutSettling: [RuleKey] = [
        Key(
            "settle", "How long a file must not change before it is reported; 5s if it is polled.",
            .duration(allowsZero: true), standard: JSONValue(SettlePolicy.quietWhenWatched),
            examples: ["500ms", "10s"], into: \.rule.settle.quiet),
        Key(
            "stable", "Further checks that must find the file unchanged.",
            .mapping(
                [
                    Key("every", "The interval between two checks.", .duration(), into: \.every),
                    Key("rounds", "How many checks must match the previous one.", .integer(1...1_000), into: \.rounds),
                ], over: StableRounds()), examples: [["every": "1s", "rounds": 3]], into: \.rule.settle.stable),
        Key(
            "writers", "Whether to wait while a process has the file open for writing.",
            .choice(SettlePolicy.Gate.self), into: \.rule.settle.writers),
        Key(
            "locks", "Whether to wait while a process has the file locked.", .choice(SettlePolicy.Gate.self),
            into: \.rule.settle.locks),
        Key(
            "when_held", "The time without a change after which a file that a process has open or locked is finished.",
            .duration(), examples: ["5m"], into: \.rule.settle.whenHeld),
        Key(
            "ignore_partial", "Whether to wait while a file next to it shows that it is still being transferred.",
            .boolean, standard: .bool(initial.settle.partial == .wait)
        ) { $0.rule.settle.partial = $1 ? .wait : .ignore },
        Key(
            "max_wait", "The maximum time to wait for a file to settle; after it, the file is reported as it is.",
            .duration(), examples: ["10m"], into: \.rule.settle.maximumWait),
    ]

    private static let eventNames = SchemaForm.words(EventMask.words + EventMask.inotifyWords)

    private static let aboutEvents: [RuleKey] = [
        Key(
            "events", "The events that run the action. Names of inotify(7) are also accepted.",
            Form("list", SchemaForm.list(of: eventNames, isNonEmpty: true)) { $0.eventWords($1) },
            standard: .array(EventSpelling.words(of: initial.events).map(JSONValue.string))
        ) {
            $0.eventWords = $1
            $0.rule.events = $1.reduce(into: []) { $0.formUnion($1.mask) }
        },
        Key(
            "existing", "What to do with existing files when the rule first runs.", .choice(Rule.Existing.self),
            standard: .string(Rule.Existing.ignore.rawValue), into: \.rule.existing),
        Key("missing", "What to do if the root does not exist.", .choice(MissingRoot.self), into: \.rule.missing),
        Key(
            "same_content", "Whether to report a rewrite with the same content.", .choice(Rule.Reporting.self),
            into: \.rule.sameContent),
        Key(
            "own_writes", "Whether to report changes that the rule's own action makes to its file.",
            .choice(Rule.Reporting.self), into: \.rule.ownWrites),
        Key(
            "tail", "Deliver the text that is appended to a file.",
            .switched(
                [
                    Key(
                        "lines", "Whether to deliver whole lines; with false, the text as it is written.", .boolean,
                        into: \.hasLines),
                    Key(
                        "max_wait", "How long an unfinished line may wait for its end.", .duration(allowsZero: true),
                        into: \.maximumWait),
                    Key(
                        "max_bytes", "The maximum number of bytes per event; the rest follows in the next one.",
                        .size(1_000...16_000_000, shown: "from 1 KB to 16 MB"), into: \.maximumBytes),
                ], over: Rule.Tail()), into: \.rule.tail),
        Key(
            "batch", "Run the action once for many files.",
            .switched(
                [
                    Key("files", "The maximum number of files per run.", .integer(1...100_000), into: \.files),
                    Key(
                        "wait", "How long no further file may arrive before the batch runs.",
                        .duration(allowsZero: true), into: \.wait),
                    Key(
                        "max_wait", "The maximum time that the first file waits for others.", .duration(),
                        into: \.maximumWait),
                ], over: Rule.Batch(),
                finish: { decoder, entry, batch in
                    decoder.fit(&batch.wait, "wait", &batch.maximumWait, "max_wait", in: entry.value)
                }), examples: [["files": 100, "wait": "5s"]], into: \.rule.batch),
        Key("backend", "How the root is watched.", .choice(Backend.self) { $0.backend($1) }, into: \.rule.backend),
        Key(
            "poll", "The interval between two scans of a polled root.",
            .duration(atLeast: (.milliseconds(100), "100ms")), into: \.rule.pollInterval),
        Key("catch_up", "Whether to report changes made while Alight did not run.", .boolean, into: \.rule.catchUp),
    ]

    private static let aboutActions: [RuleKey] = [
        Key(
            "action", "The action to run: a handler, a program, a shell command, or a list of them.",
            .unread("action or list of actions", ["$ref": "#/$defs/actions"]),
            examples: [["use": "move", "with": ["to": "/srv/archive/"]]], isShared: false
        ) { _, _ in },
        Key("timeout", "How long an action may take.", .duration(), into: \.rule.timeout),
        Key(
            "concurrency", "How many files of this rule are processed at the same time.", .integer(1...1_024),
            into: \.rule.concurrency),
        Key(
            "retry", "The attempts for a failing job, and the delays between them; false for one attempt.", retryForm,
            examples: [["attempts": 5, "delay": "10s", "max_delay": "15m"]]
        ) { $0.rule.retry = $1 ?? RetryPolicy(attempts: 1) },
        Key(
            "on_failure", "The action to run when a job has failed permanently.",
            Form("action or list of actions", ["$ref": "#/$defs/actions"]) { $0.steps(from: $1) },
            examples: [["use": "move", "with": ["to": "/srv/quarantine/"]]], into: \.onFailure),
        Key(
            "while_busy", "What to do if a file changes while its action runs.", .choice(WhileBusy.self),
            into: \.rule.whileBusy),
        Key(
            "cooldown", "The minimum time between two runs for one file.", .duration(allowsZero: true),
            into: \.rule.cooldown),
    ]

    private static let retryForm = Form<RuleDecoder, RetryPolicy?>.switched(
        [
            Key("attempts", "The maximum number of attempts.", .integer(1...1_000), into: \.attempts),
            Key("delay", "The delay after the first attempt; it doubles each time.", .duration(), into: \.delay),
            Key("max_delay", "The maximum delay.", .duration(), into: \.maximumDelay),
            Key("on", "Which failures are retried.", .choice(RetryPolicy.Failures.self), into: \.on),
        ], over: RetryPolicy(),
        help: { entry in
            let number = entry.value.isPlain ? entry.value.text.flatMap { Int($0) } ?? 0 : 0
            return number > 1 ? "write { attempts: \(number) }" : nil
        }
    ) { decoder, entry, policy in
        decoder.fit(&policy.delay, "delay", &policy.maximumDelay, "max_delay", in: entry.value)
    }

    private static let aboutPrograms: [RuleKey] = [
        Key(
            "env", "Additional environment variables of programs.",
            Form(
                "mapping",
                [
                    "type": "object", "propertyNames": ["pattern": "^(?!ALIGHT_|TMPDIR$)[A-Za-z_][A-Za-z0-9_]*$"],
                    "additionalProperties": SchemaForm.template,
                ]
            ) { $0.environment($1) }, examples: [["SITE": "https://example.org"]], into: \.rule.environment),
        Key(
            "directory",
            "The working directory of programs: by default that of the rules file, for plugins a scratch directory.",
            Form("directory", SchemaForm.text(minimum: 1, pattern: SchemaForm.templatePattern)) {
                $0.workingDirectory($1)
            },
            into: \.rule.directory),
        Key(
            "stdin", "The standard input of `exec` and `shell`: the request, or `/dev/null`.",
            .choice(StandardInput.self), examples: ["request"], into: \.rule.chosenInput),
        Key(
            "umask", "The umask of programs: octal digits in quotes.",
            Form("string", ["type": "string", "pattern": "^0?[0-7]{3}$"]) { $0.umask($1) }, standard: "027",
            examples: ["022"], into: \.rule.confinement.umask),
        Key(
            "nice", "The niceness of programs, from -20 to 19; values below 0 require root.",
            Form("number", SchemaForm.integer(-20...19)) { $0.nice($1) }, examples: [10],
            into: \.rule.confinement.nice),
        Key(
            "ionice", "The I/O priority of programs.",
            Form("word", ["type": "string", "pattern": "^(idle|best-effort(:[0-7])?|realtime:[0-7])$"]) {
                $0.ioPriority($1)
            }, examples: ["idle", "best-effort:7"], into: \.rule.confinement.ioPriority),
        Key(
            "limits", "The resource limits of programs.",
            .orFalse(
                .mapping(
                    limits, over: ResourceLimits(), expected: "a mapping or false",
                    help: { _, _ in "write a mapping, such as { cpu: 30s, memory: 512 MiB }" })),
            examples: [["cpu": "30s", "memory": "512 MiB", "files": 256, "file_size": "1 GiB"]],
            into: \.rule.confinement.limits),
        Key(
            "run_as", "The user that programs run as, USER or USER:GROUP; requires root.",
            .orFalse(Form("user", SchemaForm.text(minimum: 1, pattern: "^[^:]+(:.+)?$")) { $0.user($1) }),
            examples: ["www-data", "media:users"], into: \.rule.confinement.user),
        Key(
            "sandbox", "What programs can access; with `read` or `write`, no other files.",
            .orFalse(
                .mapping(
                    sandbox, over: Sandbox(), expected: "a mapping or false",
                    help: { _, _ in "write a mapping, such as { write: [/srv/out], network: no }" }
                ) { $0.checkSandbox($2, $1) }), examples: [["write": ["/srv/out"], "network": "no"]],
            into: \.rule.confinement.sandbox),
    ]

    private static let limits: [Key<RuleDecoder, ResourceLimits>] = [
        Key("cpu", "CPU time, in whole seconds.", .duration(atLeast: (.seconds(1), "1s")), into: \.cpu),
        Key(
            "memory", "Private writable memory, in bytes.",
            .size((4 << 20)...64_000_000_000_000, shown: "4 MiB or more"), into: \.memory),
        Key("files", "Open file descriptors.", .integer(16...1_048_576), into: \.files),
        Key("processes", "Processes and threads of the user, in total.", .integer(1...4_194_304), into: \.processes),
        Key(
            "file_size", "The size of a written file, in bytes.", .size(1...512_000_000_000_000, shown: "more than 0"),
            into: \.fileSize),
    ]

    private static let sandbox: [Key<RuleDecoder, Sandbox>] = {
        let paths = Form<RuleDecoder, [Template]>(
            "list of paths", SchemaForm.list(of: SchemaForm.text(minimum: 1, pattern: SchemaForm.templatePattern))
        ) { $0.paths($1) }
        let yesOrNo = Form<RuleDecoder, Bool>(
            "`yes` or `no`", ["enum": [true, false, "yes", "no"]], json: { $0 ? "yes" : "no" }
        ) { $0.bool($1, ("yes", "no")) }
        return [
            Key("read", "Paths that may be read, including everything below them.", paths, into: \.read),
            Key("write", "Paths that may also be written.", paths, into: \.write),
            Key("network", "Whether programs can use the network.", yesOrNo, into: \.allowsNetwork),
            Key("required", "Whether a program is not run if it cannot be confined.", yesOrNo, into: \.isRequired),
        ]
    }()

    private static let aboutOrder: [RuleKey] = [
        Key(
            "window", "The hours in which actions may start, in local time.",
            .orFalse(
                Form(
                    "hours or list of hours",
                    SchemaForm.oneOrMore(["type": "string", "pattern": .string(windowPattern)])
                ) { $0.window($1) }), examples: ["22:00-06:00", "Mon-Fri 22:00-06:00"], into: \.rule.window),
        Key(
            "ready", "Further conditions that must be true before the action starts.",
            .orFalse(.mapping(ready, over: Readiness())), examples: [["done_file": "${name}.done"]],
            into: \.rule.ready),
        Key(
            "group", "Which files of a directory are processed together: those with the same value of this string.",
            Form("string", SchemaForm.text(minimum: 1, pattern: "(?=.*\\$\\{)\(SchemaForm.namePattern)")) {
                $0.group($1)
            }, examples: ["${stem}"], into: \.group),
        Key(
            "require", "The kinds of files that a group requires: extensions, or globs for names.",
            Form("list", SchemaForm.list(of: SchemaForm.text(minimum: 1, pattern: "^[^/]*$"), isNonEmpty: true)) {
                $0.required($1)
            }, examples: [["mkv", "nfo"]], into: \.required),
        Key(
            "priority", "The priority among rules with due jobs; higher values run first.", .integer(-1_000...1_000),
            into: \.rule.priority),
        Key("stop", "Whether later rules skip the files that this rule matches.", .boolean, into: \.rule.isLast),
        Key("allow_loop", "Whether the rule may write files that trigger it again.", .boolean, into: \.allowsLoop),
        Key(
            "tags", "Words by which `alight run --tag` selects rules.",
            Form(
                "word or list of words",
                SchemaForm.oneOrMore(
                    SchemaForm.text(minimum: 1, maximum: 64, pattern: "^(?!-)[A-Za-z0-9_.-]*$"), allowsNone: true)
            ) { $0.tags($1) }, examples: [["nightly"]], into: \.rule.tags),
    ]

    private static let ready: [Key<RuleDecoder, Readiness>] = [
        Key(
            "done_file", "A file that marks this one as complete, relative to its directory.",
            Form("string", SchemaForm.text(minimum: 1, pattern: "(?=^[^/~])\(SchemaForm.namePattern)")) {
                $0.doneFile($1)
            }, into: \.doneFile),
        Key("min_age", "The minimum time since the last change of the content.", .duration(), into: \.minimumAge),
        Key("min_size", "The minimum size in bytes.", .size(1...Int.max, shown: "more than 0")) {
            $0.minimumSize = UInt64($1)
        },
        Key(
            "command", "A program that exits with 0 if the file is ready, and with 75 if it is not ready yet.",
            Form("list", SchemaForm.command) { $0.exec($1, number: 0) }, into: \.command),
    ]

    /// `22:00-06:00` or `Mon-Fri 22:00-06:00`; the case of the days does not matter.
    private static let windowPattern: String = {
        let names = ["sun(day)?", "mon(day)?", "tue(sday)?", "wed(nesday)?", "thu(rsday)?", "fri(day)?", "sat(urday)?"]
        let day = "(" + names.joined(separator: "|") + ")"
        let anyCase = day.map { $0.isLetter ? "[\($0)\($0.uppercased())]" : String($0) }.joined()
        let span = "\(anyCase)(-\(anyCase))?"
        let start = "([01]?[0-9]|2[0-3]):[0-5][0-9]"
        return "^ *(\(span)(,\(span))* +)?\(start)-(\(start)|24:00) *$"
    }()
}
