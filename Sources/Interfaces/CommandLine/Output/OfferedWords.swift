import ArgumentParser
import Configuration
import Plugins
import Rules
import Storage
import System

/// Shell completions: the names of rules, tags, handlers and plugins, and the ids of jobs.
///
/// The scripts of `--generate-completion-script` run the program to get them. It then prints no messages and starts no
/// plugins.
enum OfferedWords {
    static let rules = CompletionKind.custom { words, _, _ in loaded(words).map { $0.rulesInOrder.map(\.name) } ?? [] }

    static let tags = CompletionKind.custom { words, _, _ in
        Set(loaded(words)?.rulesInOrder.flatMap(\.tags) ?? []).sorted()
    }

    static let handlers = CompletionKind.custom { words, _, _ in
        program.map { $0.registry.names(from: folder(words, $0)) } ?? []
    }

    static let plugins = CompletionKind.custom { words, _, _ in
        program.map { $0.discovery.names(from: folder(words, $0)) } ?? []
    }

    /// Completes the ids of the newest jobs in these states, or in any state if the set is empty.
    static func jobs(_ states: Set<JobState> = []) -> CompletionKind {
        .custom { words, _, _ in
            guard let options = try? JournalOptions.parse(options(["--journal", "--config"], in: words)),
                let (settings, diagnostics) = try? options.configuration.read(options.apply),
                !diagnostics.contains(where: { $0.severity == .error }),
                case .file(let file)? = settings.settings.journal?.value,
                let reader = try? JournalReader(file, isTraceless: true),
                let found = try? reader.jobs(JournalQuery(states: states, limit: 50))
            else { return [] }
            return found.jobs.map(\.id.description)
        }
    }

    /// Completes one of several words in a comma-separated list.
    static func list(of words: [String]) -> CompletionKind {
        .custom { _, _, typed in
            let first = typed.lastIndex(of: ",").map { typed[...$0] } ?? ""
            return words.map { first + $0 }
        }
    }

    private static var program: CommandContext? { try? CommandContext(startsPlugins: false) }

    private static func loaded(_ words: [String]) -> LoadedRules? { program?.rulesInSilence(named(in: words)) }

    /// Returns the values of each `--rules`.
    private static func named(in words: [String]) -> [String] {
        options(["--rules"], in: words).filter { $0 != "--rules" }
    }

    /// Returns the options with these names on a command line, with their values.
    private static func options(_ names: [String], in words: [String]) -> [String] {
        zip(words, words.dropFirst()).flatMap { names.contains($0) && !$1.isEmpty ? [$0, $1] : [] }
    }

    /// Returns the directory whose plugins are used.
    private static func folder(_ words: [String], _ program: CommandContext) -> PathBytes {
        guard let first = program.rulesInSilence(named(in: words))?.files.first else {
            return program.loading.currentFolder
        }
        return program.path(first).parent
    }
}
