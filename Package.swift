// swift-tools-version: 6.3
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// A target in a directory of `Sources/`: Swift 6, the strict features, warnings as errors.
func layer(_ name: String, in path: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, path: "Sources/\(path)", swiftSettings: strict)
}

/// A C target, or the module map of a system library.
func cShim(_ name: String, _ dependencies: [Target.Dependency] = [], settings: [CSetting] = []) -> Target {
    .target(name: name, dependencies: dependencies, path: "Sources/Base/CShims/\(name)", cSettings: settings)
}

func systemLibrary(_ name: String, pkgConfig: String, package: String) -> Target {
    .systemLibrary(
        name: name, path: "Sources/Base/CShims/\(name)", pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// The tests of a target, in a directory of `Tests/`; golden files are read in place, so they are not resources.
func tests(
    _ name: String, in path: String = "", _ dependencies: [Target.Dependency], exclude: [String] = []
) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: dependencies, path: "Tests/\(path)/\(name)Tests", exclude: exclude,
        swiftSettings: strict)
}

let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let sqlite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let heap = Target.Dependency.product(name: "HeapModule", package: "swift-collections")
let metrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

// For `--version`. Not Context.gitInformation: SwiftPM caches the evaluated manifest, so the commit could be outdated. The
// Makefile sets this for release builds; other builds have no commit, and are not linked again for one.
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
        // Base: C.
        systemLibrary("CLibCrypto", pkgConfig: "libcrypto", package: "libssl-dev"),
        systemLibrary("CLibYAML", pkgConfig: "yaml-0.1", package: "libyaml-dev"),
        systemLibrary("CLibMagic", pkgConfig: "libmagic", package: "libmagic-dev"),
        systemLibrary("CLibPCRE2", pkgConfig: "libpcre2-8", package: "libpcre2-dev"),
        systemLibrary("CLibXXHash", pkgConfig: "libxxhash", package: "libxxhash-dev"),
        cShim("CAlightLinux"),
        cShim("CBuildCommit", settings: commit),
        // These load the library of their name when it is first used; only its headers are needed here.
        cShim("CLibArchive", ["CSharedLibrary"]),
        cShim("CLibCurl", ["CSharedLibrary"]),
        cShim("CLibMicroHTTPD", ["CSharedLibrary"]),
        cShim("CSharedLibrary"),
        // Static, because the dynamic loader and Swift's runtime would double the time that a start takes.
        .executableTarget(
            name: "alight-launch", path: "Sources/Actions/Programs/alight-launch",
            linkerSettings: [.unsafeFlags(["-static-executable"])]),

        // Base: knows nothing of rules.
        layer("System", in: "Base/System", ["CAlightLinux"]),
        layer("Digests", in: "Base/Digests", ["CLibCrypto", "CLibXXHash"]),
        layer("Globbing", in: "Base/Matching/Globbing"),
        layer("RegularExpressions", in: "Base/Matching/RegularExpressions", ["CLibPCRE2"]),
        layer("ContentTypes", in: "Base/Matching/ContentTypes", ["CLibMagic"]),
        layer("JSON", in: "Base/JSON"),
        layer("PluginProtocol", in: "Libraries/PluginProtocol", ["JSON"]),

        // The first stages of the pipeline, which are a library of their own without rules.
        layer("FileEvents", in: "Model/FileEvents", ["System"]),
        layer("Watching", in: "Pipeline/Watching", ["CAlightLinux", "FileEvents", "System"]),
        layer("Settling", in: "Pipeline/Settling", ["FileEvents", "System", heap]),
        layer(
            "Reconciling", in: "Pipeline/Reconciling",
            ["FileEvents", "Globbing", "Settling", "System", "Watching", heap]),
        layer(
            "FileObserving", in: "Libraries/FileObserving",
            ["FileEvents", "Globbing", "Reconciling", "Settling", "System", "Watching"]),

        // Rules, storage, configuration and the action API.
        layer(
            "Rules", in: "Model/Rules",
            ["FileEvents", "Globbing", "JSON", "PluginProtocol", "RegularExpressions", "System"]),
        layer("Records", in: "Model/Records", ["FileEvents", "Rules", "System"]),
        layer(
            "Storage", in: "Storage",
            [
                "FileEvents", "Globbing", "JSON", "PluginProtocol", "Records", "Rules", "System", grdb,
                sqlite,
            ]),
        layer(
            "Configuration", in: "Configuration",
            [
                "CLibYAML", "FileEvents", "Globbing", "JSON", "PluginProtocol", "RegularExpressions", "Rules",
                "System",
            ]),
        layer(
            "ActionAPI", in: "Actions/ActionAPI",
            [
                "CAlightLinux", "ContentTypes", "Digests", "FileEvents", "JSON", "PluginProtocol", "Rules", "System",
                logging,
            ]),

        // The rest of the pipeline.
        layer(
            "Gates", in: "Pipeline/Gates",
            ["FileEvents", "PluginProtocol", "Reconciling", "Rules", "Settling", "System"]),
        layer(
            "Monitoring", in: "Pipeline/Monitoring",
            [
                "FileEvents", "Gates", "PluginProtocol", "Reconciling", "Records", "Rules", "Settling", "System",
                "Watching", metrics,
            ]),
        layer(
            "Jobs", in: "Pipeline/Jobs",
            [
                "ActionAPI", "FileEvents", "Gates", "Monitoring", "PluginProtocol", "Reconciling", "Records", "Rules",
                "Settling", "System", heap, logging,
            ]),
        layer(
            "Running", in: "Pipeline/Running",
            [
                "ActionAPI", "FileEvents", "Gates", "Globbing", "Jobs", "Monitoring", "PluginProtocol", "Reconciling",
                "Records", "Rules", "Settling", "System", "Watching", logging,
            ]),
        layer(
            "Engine", in: "Pipeline/Engine",
            [
                "ActionAPI", "FileEvents", "Gates", "Globbing", "Jobs", "Monitoring", "PluginProtocol", "Reconciling",
                "Records", "Rules", "Running", "Settling", "System", "Watching", logging,
            ]),

        // The actions.
        layer(
            "FileActions", in: "Actions/FileActions",
            [
                "ActionAPI", "CAlightLinux", "CLibArchive", "Digests", "FileEvents", "Globbing", "JSON",
                "PluginProtocol", "Rules", "System", logging,
            ]),
        .target(
            name: "Programs",
            dependencies: [
                "ActionAPI", "CAlightLinux", "FileEvents", "JSON", "PluginProtocol", "Rules", "System", logging,
            ], path: "Sources/Actions/Programs", exclude: ["alight-launch"], swiftSettings: strict),
        layer(
            "PersistentPlugins", in: "Actions/PersistentPlugins",
            ["ActionAPI", "CAlightLinux", "JSON", "PluginProtocol", "Programs", "System", logging]),
        layer(
            "Plugins", in: "Actions/Plugins",
            [
                "ActionAPI", "FileEvents", "JSON", "PersistentPlugins", "PluginProtocol", "Programs", "Rules", "System",
                logging,
            ]),
        layer(
            "OtherActions", in: "Actions/OtherActions",
            [
                "ActionAPI", "CLibCurl", "Digests", "FileEvents", "JSON", "PluginProtocol", "Programs", "Rules",
                "System", logging,
            ]),
        layer(
            "PluginConformance", in: "Actions/PluginConformance",
            [
                "ActionAPI", "FileEvents", "JSON", "PersistentPlugins", "PluginProtocol", "Plugins", "Programs",
                "Rules", "System", logging,
            ]),

        // Interfaces: the control API with the dashboard, whose files are in the program, and the program.
        layer(
            "ControlAPI", in: "Interfaces/ControlAPI",
            ["CAlightLinux", "CLibMicroHTTPD", "JSON", "System", metrics]),
        .target(
            name: "Dashboard", dependencies: ["ControlAPI", "JSON", "System"],
            path: "Sources/Interfaces/Dashboard", resources: [.embedInCode("Resources")], swiftSettings: strict),
        .executableTarget(
            name: "alight",
            dependencies: [
                "ActionAPI", "CAlightLinux", "CBuildCommit", "Configuration", "ContentTypes", "ControlAPI", "Dashboard",
                "FileActions", "FileEvents", "FileObserving", "Gates", "Globbing", "JSON", "Monitoring", "OtherActions",
                "Engine", "Jobs", "Running",
                "PluginConformance", "PluginProtocol", "Plugins", "Programs", "Reconciling", "Records",
                "Rules", "Settling", "Storage", "System", "Watching", argumentParser, logging, metrics,
            ],
            path: "Sources/Interfaces/CommandLine",
            resources: [.embedInCode("Skeletons/Resources")], swiftSettings: strict),

        // A plugin that is written with PluginProtocol; `make build` puts it into its directory.
        .executableTarget(
            name: "digest-plugin", dependencies: ["CLibCrypto", "PluginProtocol"], path: "plugins/digest/source",
            swiftSettings: strict),

        // Support for tests.
        .target(
            name: "TestKit", dependencies: ["CAlightLinux", "FileEvents", "System"], path: "Tests/Support/TestKit",
            swiftSettings: strict),
        .target(name: "CTestKit", path: "Tests/Support/CTestKit"),
        // Journals with rows that a test inserts.
        .target(
            name: "JournalFixtures", dependencies: ["Records", "Rules", "Storage", "System", grdb],
            path: "Tests/Support/JournalFixtures", swiftSettings: strict),
        .executableTarget(
            name: "watch-hints", dependencies: ["FileEvents", "System", "Watching"],
            path: "Tests/Support/watch-hints",
            swiftSettings: strict),
        .executableTarget(
            name: "stub-plugin", dependencies: ["PluginProtocol"], path: "Tests/Support/stub-plugin",
            swiftSettings: strict),

        // Drivers. The first changes files at random, and compares the reported events with the disk.
        .executableTarget(
            name: "mirror-driver", dependencies: ["CAlightLinux", "CTestKit", "FileEvents", "System", "TestKit"],
            path: "Tests/Drivers/MirrorDriver", swiftSettings: strict),
        // Kills the program while files change, and compares the recorded actions with the disk.
        .executableTarget(name: "crash-recorder", dependencies: ["CTestKit"], path: "Tests/Drivers/CrashRecorder"),
        .executableTarget(
            name: "crash-driver", dependencies: ["CTestKit", "FileEvents", "System", "TestKit", grdb],
            path: "Tests/Drivers/CrashDriver", swiftSettings: strict),
        // Runs the core in a simulated world, by a seed.
        .target(
            name: "Simulation",
            dependencies: [
                "ActionAPI", "FileEvents", "Gates", "Globbing", "Engine", "Jobs", "Monitoring", "PluginProtocol",
                "Running",
                "Reconciling",
                "Records", "Rules", "Storage", "System", "TestKit", "Watching", logging,
            ], path: "Tests/Simulator/Simulation",
            swiftSettings: strict + [.unsafeFlags(["-O"], .when(configuration: .debug))]),
        .executableTarget(
            name: "simulator", dependencies: ["Simulation"], path: "Tests/Simulator/Program",
            swiftSettings: strict),
        tests(
            "Simulation", in: "Simulator",
            [
                "CTestKit", "FileEvents", "Reconciling", "Rules", "Simulation", "simulator", "System",
                "TestKit",
                "Watching",
            ]),

        // Tests.
        tests("System", in: "Base", ["CAlightLinux", "FileEvents", "System", "TestKit"]),
        tests("JSON", in: "Base", ["JSON", "TestKit"]),
        tests("Globbing", in: "Base/Matching", ["Globbing", "TestKit"]),
        tests("RegularExpressions", in: "Base/Matching", ["RegularExpressions"]),
        tests("ContentTypes", in: "Base/Matching", ["ContentTypes", "FileEvents", "System", "TestKit"]),
        tests(
            "PluginProtocol", in: "Libraries",
            ["FileEvents", "JSON", "PluginProtocol", "stub-plugin", "System", "TestKit"]),
        tests(
            "Watching", in: "Pipeline",
            ["CAlightLinux", "FileEvents", "System", "TestKit", "watch-hints", "Watching"]),
        tests("Settling", in: "Pipeline", ["FileEvents", "Settling", "System", "TestKit"]),
        tests(
            "Reconciling", in: "Pipeline",
            ["FileEvents", "Globbing", "Reconciling", "Settling", "Simulation", "System", "Watching"]),
        tests("FileObserving", in: "Libraries", ["FileEvents", "FileObserving", "System", "TestKit"]),
        tests(
            "Rules", in: "Model",
            [
                "FileEvents", "Globbing", "JSON", "PluginProtocol", "RegularExpressions", "Rules", "Settling", "System",
                "TestKit", "Watching",
            ]),
        tests(
            "Storage",
            [
                "FileEvents", "Globbing", "JournalFixtures", "JSON", "PluginProtocol", "Reconciling",
                "Records", "Rules", "Storage", "System", "TestKit", grdb, sqlite,
            ], exclude: ["Golden"]),
        tests(
            "Configuration", in: "Configuration",
            [
                "Configuration", "FileEvents", "Globbing", "JSON", "PluginProtocol", "RegularExpressions", "Rules",
                "Settling", "System", "TestKit", "Watching",
            ],
            exclude: ["Golden"]),
        tests(
            "Actions", in: "Actions",
            [
                "ActionAPI", "alight-launch", "CAlightLinux", "FileActions", "FileEvents", "Globbing",
                "JSON", "OtherActions", "PersistentPlugins", "PluginConformance", "PluginProtocol", "Plugins",
                "Programs", "Rules", "System", "TestKit", logging,
            ]),
        tests(
            "Pipeline", in: "Pipeline",
            [
                "ActionAPI", "ControlAPI", "FileEvents", "Gates", "Globbing", "JSON", "Engine", "Jobs", "Monitoring",
                "Running",
                "PluginProtocol",
                "Reconciling", "Records",
                "RegularExpressions", "Rules", "Settling", "Simulation", "Storage", "System", "TestKit", "Watching",
                logging,
            ]),
        tests(
            "Dashboard", in: "Interfaces",
            ["ControlAPI", "Dashboard", "FileEvents", "JSON", "System", "TestKit", metrics],
            exclude: ["Golden"]),
        tests(
            "EndToEnd", in: "Interfaces",
            [
                "alight", "alight-launch", "crash-driver", "crash-recorder", "digest-plugin", "FileEvents",
                "JournalFixtures", "JSON", "mirror-driver", "PluginProtocol", "Rules", "System", "TestKit",
            ],
            exclude: ["Golden", "Scenarios"]),
    ],
    swiftLanguageModes: [.v6]
)

// Only for `make docs`, so that users of the libraries do not download the plugin.
if Context.environment["ALIGHT_DOCS"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"))
}
