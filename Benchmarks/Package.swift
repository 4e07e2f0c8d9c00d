// swift-tools-version: 6.3
import PackageDescription

// A separate package, so that builds of the program do not include it. The programs in C are built by make.
let package = Package(
    name: "benchmarks",
    dependencies: [.package(name: "alight", path: "..")],
    targets: [
        // Prints the events of the library as lines.
        .executableTarget(
            name: "observer", dependencies: [.product(name: "FileObserving", package: "alight")])
    ]
)
