// swift-tools-version: 6.3
import PackageDescription

// Beside the package of the program, so that nobody who only uses that builds this.
let package = Package(
    name: "benchmarks",
    dependencies: [.package(name: "alight", path: "..")],
    targets: [
        // What plain inotify can do: the measure of each figure.
        .executableTarget(name: "reference"),
        // What SQLite alone needs for the rows of a journal.
        .executableTarget(name: "rows", linkerSettings: [.linkedLibrary("sqlite3")]),
        // Makes the changes, and tells how long it took until they were seen.
        .executableTarget(name: "load"),
        // A plugin that does nothing, once or for many requests.
        .executableTarget(name: "answer"),
        // What a process for each request costs without Alight.
        .executableTarget(name: "spawn"),
        // What the library tells a Swift program, as lines.
        .executableTarget(
            name: "observer", dependencies: [.product(name: "FileObserving", package: "alight")]),
    ],
    cLanguageStandard: .gnu17
)
