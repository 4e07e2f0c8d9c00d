// swift-tools-version: 6.3
import PackageDescription

// Beside the package of the program, so that nobody who only uses that builds this.
let package = Package(
    name: "benchmarks",
    targets: [
        // What plain inotify can do: the measure of each figure.
        .executableTarget(name: "reference"),
        // Makes the changes, and tells how long it took until they were seen.
        .executableTarget(name: "load"),
    ],
    cLanguageStandard: .gnu17
)
