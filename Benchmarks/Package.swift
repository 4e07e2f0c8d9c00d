// swift-tools-version: 6.3
import PackageDescription

// Beside the package of the program, so that nobody who only uses that builds this. What is in C is built by make.
let package = Package(
    name: "benchmarks",
    dependencies: [.package(name: "alight", path: "..")],
    targets: [
        // What the library tells a Swift program, as lines.
        .executableTarget(
            name: "observer", dependencies: [.product(name: "FileObserving", package: "alight")])
    ]
)
