// swift-tools-version: 6.3
import PackageDescription

let package = Package(
    name: "observe-a-folder",
    dependencies: [
        // Of a released Alight: .package(url: "https://…/alight", from: "0.1.0")
        .package(name: "alight", path: "../..")
    ],
    targets: [
        .executableTarget(
            name: "observe-a-folder", dependencies: [.product(name: "FileObserving", package: "alight")])
    ]
)
