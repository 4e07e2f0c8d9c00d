import ArgumentParser
import FileEvents
import Handling
import RuleLoading
import Rules

/// The words that shells offer for a name: those of rules, tags, handlers and plugins.
///
/// The scripts of `--generate-completion-script` start the program for them. Nothing is said then, and no plugin started.
enum OfferedWords {
    static let rules = CompletionKind.custom { words, _, _ in
        loaded(words).map { $0.rulesInOrder.map(\.name) } ?? []
    }

    static let tags = CompletionKind.custom { words, _, _ in
        Set(loaded(words)?.rulesInOrder.flatMap(\.tags) ?? []).sorted()
    }

    static let handlers = CompletionKind.custom { words, _, _ in
        program.map { $0.registry.names(from: folder(words, $0)) } ?? []
    }

    static let plugins = CompletionKind.custom { words, _, _ in
        program.map { $0.discovery.names(from: folder(words, $0)) } ?? []
    }

    private static var program: ProgramSurroundings? { try? ProgramSurroundings(startsPlugins: false) }

    private static func loaded(_ words: [String]) -> LoadedRules? { program?.rulesInSilence(named(in: words)) }

    /// What stands behind each `--rules`.
    private static func named(in words: [String]) -> [String] {
        zip(words, words.dropFirst()).compactMap { $0 == "--rules" && !$1.isEmpty ? $1 : nil }
    }

    /// The folder whose plugins are meant.
    private static func folder(_ words: [String], _ program: ProgramSurroundings) -> PathBytes {
        guard let first = program.rulesInSilence(named(in: words))?.files.first else {
            return program.loading.currentFolder
        }
        return program.path(first).parent
    }
}
