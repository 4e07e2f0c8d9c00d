import FileObserving
import Foundation
import Testing
import TestKit

/// The code of the documentation, compiled: each of its blocks appears here, line by line.
struct ArticleTests {
    static let articles = [
        "Sources/Libraries/FileObserving/FileObserving.docc/FileObserving.md",
        "Sources/Libraries/FileObserving/FileObserving.docc/GettingStarted.md", "docs/library.md",
    ]

    @Test(arguments: articles)
    func `the code in the documentation compiles`(_ article: String) throws {
        let own = Self.lines(String(decoding: try #require(TestFile.read(PathBytes(#filePath))), as: UTF8.self))
        let path = Places.checkout.appending(article)
        let text = String(decoding: try #require(TestFile.read(path)), as: UTF8.self)
        let blocks = text.components(separatedBy: "```swift\n").dropFirst().map { block in
            Self.lines(block.components(separatedBy: "```")[0])
        }
        #expect(!blocks.isEmpty)
        for block in blocks {
            #expect(own.firstRange(of: block) != nil, "\(article): \(block.joined(separator: "\n"))")
        }
    }

    /// The lines of a block, without indentation, empty lines and imports.
    private static func lines(_ text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimmingPrefix(while: \.isWhitespace) }.map(String.init)
            .filter { !$0.isEmpty && !$0.hasPrefix("import ") }
    }

    // MARK: Code samples

    private func overview() async throws {
        for try await event in try FileObserver(roots: ["/srv/in"]).events {
            print(event.kind, event.path)
        }
    }

    private func watchADirectory() async throws {
        var options = ObservationOptions()
        options.globs = ["**/*.{jpg,png}"]
        options.excludes = ["drafts"]
        options.settle = .milliseconds(500)
        let observer = try FileObserver(roots: ["/srv/in"], options: options)
        for try await event in observer.events {
            switch event.kind {
            case .created: print("new:", event.path, event.snapshot.size)
            case .moved: print("from", event.from ?? "", "to", event.path)
            default: print(event.kind, event.path)
            }
        }
    }

    private func watchAFile() async throws -> FileObserver {
        var options = ObservationOptions()
        options.globs = [PathBytes("app.conf").escapedForGlob]
        let observer = try FileObserver(roots: ["/etc"], options: options)
        return observer
    }

    private func beSlow(_ observer: FileObserver) async throws {
        for try await batch in observer.batches {
            print(batch.count, "paths changed")
        }
        for try await event in observer.events(existing: true) {
            if event.kind == .scanEnded { print("the list is complete") }
        }
    }

    private func stop() async throws -> FileEvent? {
        let first = try await withObservation(roots: ["/srv/in"]) { observer in
            try await observer.events.first { $0.kind == .created }
        }
        return first
    }

    private func resume(_ observer: FileObserver) async throws -> FileObserver {
        let known = await observer.snapshot()
        var options = ObservationOptions()
        options.resuming = known
        let next = try FileObserver(roots: ["/srv/in"], options: options)
        return next
    }

    private func test() async throws {
        let source = ManualSource()
        let clock = ManualClock()
        var options = ObservationOptions()
        options.source = source
        options.clock = .manual(clock)
        let observer = try FileObserver(roots: ["/tmp/test"], options: options)
        source.list()

        source.hint("/tmp/test/new.txt")
        await observer.catchUp()
        clock.advance(by: .seconds(2))
        await observer.catchUp()
    }
}
