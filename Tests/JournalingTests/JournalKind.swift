import FileEvents
import Journaling
import Rules
import TestKit
import Testing

/// Which journal a test is played on.
enum JournalKind: String, CaseIterable {
    case memory, disk

    @TaskLocal static var current = JournalKind.memory
}

/// A journal for one test, with its folder; the rules `r`, `s` and `t` have begun.
final class TestJournal: Sendable {
    let journal: any Journal
    private let root: PathBytes?

    init() {
        switch JournalKind.current {
        case .memory:
            journal = DiskJournal.inMemory()
            root = nil
        case .disk:
            let (disk, root) = Self.disk()
            journal = disk
            self.root = root
        }
        _ = journal.begin(["r", "s", "t"].map { RuleRecord(name: $0, selection: "") }, at: .early)
    }

    deinit { if let root { TestFile.removeTree(root) } }

    private static func disk() -> (DiskJournal, PathBytes) {
        let root = TestFile.makeTemporaryFolder()
        do {
            return (try DiskJournal(at: root.appending("journal.db"), now: .early), root)
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

extension Timestamp {
    /// A moment before all that happens in tests.
    static let early = Timestamp(seconds: 1_000_000_000, nanoseconds: 0)
}

/// Plays each test of a suite on every kind of journal.
struct EachJournal: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        for kind in JournalKind.allCases {
            try await JournalKind.$current.withValue(kind) { try await function() }
        }
    }
}

extension Trait where Self == EachJournal {
    static var onEachJournal: Self { EachJournal() }
}

extension DiskJournal {
    /// A journal that ends with its test.
    static func inMemory() -> DiskJournal {
        do {
            return try DiskJournal(inMemory: nil, now: .early)
        } catch {
            preconditionFailure("\(error)")
        }
    }
}
