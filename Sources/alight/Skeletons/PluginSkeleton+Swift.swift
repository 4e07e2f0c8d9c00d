// The package in Swift.
extension PluginSkeleton {
    var swiftFiles: [File] {
        [
            File(path: "Package.swift", text: package), File(path: "Sources/\(name)/\(type).swift", text: program),
            File(path: ".gitignore", text: ".build/\n"),
        ]
    }

    /// `line-count` as `LineCount`.
    private var type: String {
        name.split { $0 == "-" || $0 == "_" }.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }

    private var package: String {
        let dependency: String
        switch source {
        case .address(let address): dependency = ".package(url: \"\(address)\", from: \"0.1.0\")"
        case .folder(let folder):
            let text = folder.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            dependency = ".package(name: \"alight\", path: \"\(text)\")"
        case nil: dependency = ".package(name: \"alight\", path: \"../..\")"
        }
        return """
            // swift-tools-version: 6.2
            import PackageDescription

            let package = Package(
                name: "\(name)",
                dependencies: [\(dependency)],
                targets: [
                    .executableTarget(
                        name: "\(name)", dependencies: [.product(name: "PluginProtocol", package: "alight")])
                ]
            )

            """
    }

    private var program: String {
        """
        import Glibc
        import PluginProtocol

        /// Counts the lines of a file.
        @main struct \(type): Plugin {
            // As in plugin.yaml.
            static let concurrent = 4

            func handle(_ request: PluginRequest) async throws -> PluginResponse {
                guard let event = request.events.first else { throw PluginFailure.failed("there is no event") }
                // Exact bytes, also of a name that isn't UTF-8.
                let descriptor = open(event.pathBytes.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC)
                guard descriptor >= 0 else {
                    if errno == ENOENT { throw PluginFailure.skipped("it is gone") }
                    throw PluginFailure.retry(String(cString: strerror(errno)), code: "unreadable")
                }
                defer { close(descriptor) }

                var lines = 0
                var buffer = [UInt8](repeating: 0, count: 64 << 10)
                while true {
                    // A time-out or a stop cancels the task.
                    try Task.checkCancellation()
                    let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
                    guard count >= 0 else { throw PluginFailure.retry(String(cString: strerror(errno))) }
                    guard count > 0 else { break }
                    lines += buffer[..<count].count { $0 == UInt8(ascii: "\\n") }
                }

                let least = Int(request.parameters(for: event)["least"]?.double ?? 0)
                guard lines >= least else { throw PluginFailure.failed("only \\(lines) lines", code: "too-short") }
                // What you write goes into `outputs`, else the rule meets it as an event.
                return PluginResponse(
                    .succeeded, message: "\\(lines) lines", values: ["lines": .integer(Int64(lines))])
            }
        }

        """
    }
}
