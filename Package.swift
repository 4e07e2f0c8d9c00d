// swift-tools-version: 6.3
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// A layer of the program: Swift 6, the strict features, warnings as errors.
func layer(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

/// The tests of a layer; golden texts are read where they lie, so they are not resources.
func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
    .testTarget(name: "\(name)Tests", dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let sqlite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let heap = Target.Dependency.product(name: "HeapModule", package: "swift-collections")
let metrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

// For `--version`. Not Context.gitInformation: SwiftPM keeps what it evaluated, and so the commit of some former day. The
// Makefile sets this for release builds; in others nobody knows, and nothing is linked anew for a commit.
let commit: [CSetting] = Context.environment["ALIGHT_COMMIT"].map { [.define("ALIGHT_COMMIT", to: $0)] } ?? []

let package = Package(
    name: "alight",
    products: [
        .executable(name: "alight", targets: ["alight"]),
        .executable(name: "alight-launch", targets: ["alight-launch"]),
        .library(name: "FileObserving", targets: ["FileObserving"]),
        .library(name: "PluginProtocol", targets: ["PluginProtocol"]),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    ],
    targets: [
        // Layer 0: C.
        .systemLibrary(name: "CLibCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLibYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .systemLibrary(name: "CLibMagic", pkgConfig: "libmagic", providers: [.apt(["libmagic-dev"])]),
        .systemLibrary(name: "CLibPCRE2", pkgConfig: "libpcre2-8", providers: [.apt(["libpcre2-dev"])]),
        .systemLibrary(name: "CLibXXHash", pkgConfig: "libxxhash", providers: [.apt(["libxxhash-dev"])]),
        .target(name: "CAlightLinux"),
        .target(name: "CBuildCommit", cSettings: commit),
        // These load the library of their name when it is first used; only its headers are needed here.
        .target(name: "CLibArchive", dependencies: ["CSharedLibrary"]),
        .target(name: "CLibCurl", dependencies: ["CSharedLibrary"]),
        .target(name: "CLibMicroHTTPD", dependencies: ["CSharedLibrary"]),
        .target(name: "CSharedLibrary"),
        // Static, because the dynamic loader and Swift's runtime would double the time that a start takes.
        .executableTarget(name: "alight-launch", linkerSettings: [.unsafeFlags(["-static-executable"])]),

        // Layer 1: vocabulary.
        layer("FileEvents"),
        layer("Globbing"),
        layer("PluginProtocol"),
        layer("RegularExpressions", ["CLibPCRE2"]),

        // Layer 2: hints, and what a file holds.
        layer("ContentTypes", ["CLibMagic"]),
        layer("FileWatching", ["CAlightLinux", "FileEvents"]),

        // Layer 3: when a path is finished.
        layer("Settling", ["CAlightLinux", "FileEvents", "FileWatching", heap]),

        // Layer 4: what to do when.
        .target(
            name: "Reconciling", dependencies: ["FileEvents", "FileWatching", "Globbing", "Settling", heap],
            path: "Sources/Pipeline/Reconciling", swiftSettings: strict),
        layer(
            "Rules",
            ["FileEvents", "FileWatching", "Globbing", "PluginProtocol", "RegularExpressions", "Settling"]),

        // Layer 5: events for Swift programs; rules from YAML, jobs kept, actions done.
        layer("FileObserving", ["FileEvents", "FileWatching", "Globbing", "Reconciling", "Settling"]),
        layer(
            "Storage",
            [
                "CAlightLinux", "FileEvents", "Globbing", "PluginProtocol", "Reconciling", "Rules", "Settling", grdb,
                sqlite,
            ]),
        layer(
            "RuleLoading",
            [
                "CLibYAML", "FileEvents", "FileWatching", "Globbing", "PluginProtocol", "RegularExpressions", "Rules",
                "Settling",
            ]),
        layer(
            "Handling",
            [
                "CAlightLinux", "CLibArchive", "CLibCrypto", "CLibCurl", "CLibXXHash", "ContentTypes", "FileEvents",
                "FileWatching", "Globbing", "PluginProtocol", "Rules", "Settling", logging,
            ]),

        // Layer 6: the pipeline.
        .target(
            name: "Pipeline",
            dependencies: [
                "FileEvents", "FileWatching", "Globbing", "Handling", "PluginProtocol", "Reconciling", "Rules",
                "Settling", "Storage", heap, logging, metrics,
            ], path: "Sources/Pipeline", exclude: ["Reconciling"], swiftSettings: strict),

        // Layer 7: the control API and the dashboard, whose files are in the program.
        .target(
            name: "Dashboard",
            dependencies: ["CAlightLinux", "CLibMicroHTTPD", "FileEvents", "FileWatching", "PluginProtocol", metrics],
            resources: [.embedInCode("Resources")], swiftSettings: strict),

        // Layer 8: the program.
        .executableTarget(
            name: "alight",
            dependencies: [
                argumentParser, "CAlightLinux", "CBuildCommit", "ContentTypes", "Dashboard", "FileEvents",
                "FileObserving", "FileWatching", "Globbing", "Handling", "Reconciling", "Storage", logging,
                metrics,
                "Pipeline", "PluginProtocol", "RuleLoading", "Rules", "Settling",
            ],
            resources: [.embedInCode("Skeletons/Resources")], swiftSettings: strict),

        // A plugin that is written with PluginProtocol; `make build` puts it into its folder.
        .executableTarget(
            name: "digest-plugin", dependencies: ["CLibCrypto", "PluginProtocol"], path: "plugins/digest/source",
            swiftSettings: strict),

        // Tests.
        .target(
            name: "TestKit", dependencies: ["CAlightLinux", "FileEvents"], path: "Tests/TestKit", swiftSettings: strict),
        .target(name: "CTestKit", path: "Tests/CTestKit"),
        // Journals with rows that a test puts in.
        .target(
            name: "JournalFixtures", dependencies: ["FileEvents", "Rules", "Storage", grdb],
            path: "Tests/JournalFixtures", swiftSettings: strict),
        // Works on files at random, and compares what the program tells with what is there.
        .executableTarget(
            name: "mirror-driver", dependencies: ["CAlightLinux", "CTestKit", "FileEvents", "TestKit"],
            path: "Tests/MirrorDriver", swiftSettings: strict),
        // Runs the core in a simulated world, by a seed.
        .target(
            name: "Simulation",
            dependencies: [
                "FileEvents", "FileWatching", "Globbing", "Handling", "Pipeline", "PluginProtocol", "Reconciling",
                "Rules",
                "Settling", "Storage", "TestKit", logging,
            ], path: "Tests/Simulation", swiftSettings: strict + [.unsafeFlags(["-O"], .when(configuration: .debug))]),
        .executableTarget(
            name: "simulator", dependencies: ["Reconciling", "Simulation"], path: "Tests/Simulator",
            swiftSettings: strict),
        // Kills the program while files change, and compares what was done with what is there.
        .executableTarget(name: "crash-recorder", dependencies: ["CTestKit"], path: "Tests/CrashRecorder"),
        .executableTarget(
            name: "crash-driver", dependencies: ["CTestKit", "FileEvents", "Storage", "TestKit", grdb],
            path: "Tests/CrashDriver",
            swiftSettings: strict),
        tests("Dashboard", ["Dashboard", "FileEvents", "PluginProtocol", "TestKit", metrics], exclude: ["Golden"]),
        tests(
            "EndToEnd",
            [
                "FileEvents", "JournalFixtures", "PluginProtocol", "Rules", "TestKit", "alight", "alight-launch",
                "digest-plugin", "crash-driver", "crash-recorder", "mirror-driver",
            ],
            exclude: ["Golden", "Scenarios"]),
        tests("FileEvents", ["FileEvents", "TestKit"]),
        tests("FileObserving", ["FileEvents", "FileObserving", "TestKit"]),
        .executableTarget(
            name: "watch-hints", dependencies: ["FileEvents", "FileWatching"], path: "Tests/Support/watch-hints",
            swiftSettings: strict),
        tests("FileWatching", ["CAlightLinux", "FileEvents", "FileWatching", "TestKit", "watch-hints"]),
        tests("Globbing", ["Globbing", "TestKit"]),
        .executableTarget(
            name: "stub-plugin", dependencies: ["PluginProtocol"], path: "Tests/Support/stub-plugin",
            swiftSettings: strict),
        tests("PluginProtocol", ["FileEvents", "PluginProtocol", "TestKit", "stub-plugin"]),
        tests("RegularExpressions", ["RegularExpressions", "TestKit"]),
        tests("ContentTypes", ["ContentTypes", "FileEvents", "TestKit"]),
        tests(
            "Rules",
            [
                "FileEvents", "FileWatching", "Globbing", "PluginProtocol", "RegularExpressions", "Rules", "Settling",
                "TestKit",
            ]),
        tests(
            "Storage",
            [
                "FileEvents", "Globbing", "JournalFixtures", "PluginProtocol", "Reconciling", "Rules", "Settling",
                "Storage", "TestKit", grdb, sqlite,
            ], exclude: ["Golden"]),
        tests(
            "Pipeline",
            [
                "FileEvents", "FileWatching", "Globbing", "Handling", "Pipeline", "PluginProtocol", "Reconciling",
                "RegularExpressions", "Rules", "Settling", "Storage", "TestKit", logging,
            ]),
        tests(
            "RuleLoading",
            [
                "FileEvents", "FileWatching", "Globbing", "PluginProtocol", "RegularExpressions", "RuleLoading",
                "Rules", "Settling", "TestKit",
            ],
            exclude: ["Golden"]),
        tests(
            "Handling",
            [
                "CAlightLinux", "FileEvents", "Globbing", "Handling", "PluginProtocol", "Rules", "Settling", "TestKit",
                "alight-launch", logging,
            ]),
        tests("Settling", ["FileEvents", "Settling", "TestKit"]),
        tests(
            "Simulation",
            [
                "CTestKit", "FileEvents", "FileWatching", "Reconciling", "Settling", "Simulation", "TestKit",
                "simulator",
            ]),
    ],
    swiftLanguageModes: [.v6]
)

// The documentation of the libraries: `make docs`. Whoever uses a library does not pay for it.
if Context.environment["ALIGHT_DOCS"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"))
}
