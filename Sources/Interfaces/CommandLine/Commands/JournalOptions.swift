import ActionAPI
import ArgumentParser
import Configuration
import Storage
import System

/// The options for the journal and the configuration, shared by all commands that need them.
struct JournalOptions: ParsableArguments {
    @Option(
        name: .customLong("journal"),
        help: ArgumentHelp(
            "The journal file.",
            discussion: """
                Default: 'journal' of the configuration, else $XDG_STATE_HOME/alight/journal.db, where \
                XDG_STATE_HOME defaults to ~/.local/state (as root /var/lib/alight/journal.db).
                """,
            valueName: "file"),
        completion: .file())
    var journal: String?

    @OptionGroup var configuration: ConfigurationOptions

    /// Applies the values that the options set.
    ///
    /// - Throws: `ValidationError` when the name is not a valid path.
    func apply(to settings: inout Configuration) throws {
        if let journal = try named() { settings.journal = Setting(journal, from: .flag("--journal")) }
    }

    /// Loads the configuration in effect, including these options.
    ///
    /// - Throws: The errors of ``apply(to:)``, and `Exit` when the configuration is invalid.
    func settings() throws -> Configuration { try configuration.load(apply).settings }

    private func named() throws -> JournalPlace? {
        guard let journal else { return nil }
        if journal == ":memory:" { return .memory }
        let path = RawArguments.paths([journal])[0]
        if path.bytes.isEmpty { throw ValidationError("'--journal' is empty; name a file") }
        if path.bytes.last == .slash {
            throw ValidationError("'--journal \(Display.path(path))' is a directory; name a file")
        }
        let isAbsolute = path.bytes.first == .slash
        return .file((isAbsolute ? path : CommandContext.currentFolder.appending(path.bytes)).normalized)
    }

    /// Validates the options, for commands that read a journal.
    ///
    /// - Throws: `ValidationError` when the name is not a valid path, or is `:memory:`.
    func check() throws { if case .memory = try named() { throw Self.nothingIsLeft(of: "--journal") } }

    /// Returns the journal file: the named one, the configured one, or the default.
    ///
    /// For commands that read a journal.
    ///
    /// - Throws: `ValidationError` as in ``check()``, and when no file is named and there is no default; `Exit` when
    ///   the configuration is invalid.
    func file() throws -> PathBytes {
        let settings = try settings()
        switch try settings.journalPlace() {
        case .file(let file): return file
        case .memory: throw Self.nothingIsLeft(of: settings.journal?.origin.word ?? "--journal")
        }
    }

    /// Opens the named or default journal for reading.
    ///
    /// - Parameter isFollowed: Whether the reader must see later writes.
    func open(isFollowed: Bool = false) throws -> JournalReader {
        try JournalReader(try file(), isTraceless: !isFollowed)
    }

    private static func nothingIsLeft(of word: String) -> ValidationError {
        ValidationError("'\(word) :memory:' is only for 'alight run': no other command can read it")
    }
}

extension Configuration {
    /// Returns the location of the journal.
    ///
    /// - Throws: `ValidationError` when no file is named and there is no default; `Exit` when the named file is not
    ///   trustworthy, after printing the reason.
    func journalPlace() throws -> JournalPlace {
        if let journal {
            if case .file(let file) = journal.value, OwnershipCheck.isMeaningful,
                let problem = OwnershipCheck.problem(with: file)
            {
                problem.say("the journal cannot be trusted: ")
                throw Exit(.runtimeError)
            }
            return journal.value
        }
        throw ValidationError("no location for the journal: set HOME, or name a file with --journal")
    }
}
