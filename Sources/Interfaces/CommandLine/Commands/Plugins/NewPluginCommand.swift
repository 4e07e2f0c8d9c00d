import ArgumentParser
import Foundation
import Glibc
import Plugins
import Rules
import System

extension PluginSkeleton.Language: ExpressibleByArgument {}

/// `alight plugins new`: creates a plugin from a skeleton.
struct NewPluginCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "new", "Create a plugin that works and has a test.",
        discussion: """
            Overwrites no file.

              alight plugins new resize --language bash
              alight plugins new words --language python --into ~/.config/alight/plugins
              alight plugins new stamps --language swift --source ~/src/alight
            """)

    @Argument(help: "The name of the plugin, for 'use:'.")
    var name: String

    @Option(help: .value("bash|python|swift", "The language of the plugin."))
    var language: PluginSkeleton.Language

    @Option(
        help: .value("directory", "The directory in which the plugin's own directory is created."),
        completion: .directory)
    var into: String = "plugins"

    @Option(
        help: .value(
            "source", "For Swift: the source of Alight, a directory or an https URL.",
            discussion: "Default: the checkout that contains the current directory."),
        completion: .directory)
    var source: String?

    func run() throws {
        let characters = "abcdefghijklmnopqrstuvwxyz0123456789-_".utf8
        guard name.first?.isLetter == true, name.utf8.allSatisfy(characters.contains) else {
            throw Exit(
                .usage, error: "invalid plugin name '\(name)'",
                help: "start with a letter, and use lowercase letters, digits, '-' and '_'")
        }
        let builtIn = try CommandContext(startsPlugins: false).registry.builtInHandlers
        guard !builtIn.contains(where: { $0.reference.name == name }) else {
            throw Exit(
                .usage, error: "'\(name)' is the name of a built-in handler, which 'use: \(name)' would run instead",
                help: "choose another name, such as 'my-\(name)'")
        }
        let here = CommandContext.currentDirectory
        let location = into.hasPrefix("/") ? PathBytes(into) : here.appending(Array(into.utf8))
        let directory = location.normalized.appending(name)
        let skeleton = PluginSkeleton(
            name: name, language: language, source: language == .swift ? try alightSource(here) : nil)
        try make(skeleton, in: directory)
        let test = "alight plugins test \(ShellWord.quoted(directory.bytes))"
        let build =
            language == .swift
            ? "swift build -c release --package-path \(ShellWord.quoted(directory.bytes)), then " : ""
        Output.standard.write("wrote '\(Display.path(directory))'; try it with: \(build)\(test)")
    }

    private func make(_ skeleton: PluginSkeleton, in directory: PathBytes) throws {
        let path = directory.description
        guard !FileManager.default.fileExists(atPath: path) else {
            throw Exit(.runtimeError, error: "'\(path)' already exists", help: "choose another name, or remove it")
        }
        do {
            for file in skeleton.files {
                let target = URL(fileURLWithPath: path).appendingPathComponent(file.path)
                try FileManager.default.createDirectory(
                    at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data(file.text.utf8).write(to: target, options: .withoutOverwriting)
                if file.isExecutable { _ = chmod(target.path, 0o755) }
            }
        } catch {
            throw Exit(
                .runtimeError, error: "cannot write '\(path)': \(error.localizedDescription)",
                help: "name a directory that you may write to with --into")
        }
    }

    /// Returns the location of Alight's source, for the package of the Swift skeleton.
    private func alightSource(_ here: PathBytes) throws -> PluginSkeleton.Source {
        if let source, source.contains("://") { return .address(source) }
        if let source {
            let directory = here.resolving(source.utf8).normalized
            if Self.isCheckout(directory) { return .directory(directory.description) }
            throw Exit(
                .usage, error: "'\(directory)' is not a checkout of Alight",
                help: "name the directory with its Package.swift"
            )
        }
        var directory = here
        while directory.parent != directory {
            if Self.isCheckout(directory) { return .directory(directory.description) }
            directory = directory.parent
        }
        throw Exit(
            .usage, error: "a plugin in Swift is built with Alight's library PluginProtocol, which was not found",
            help: "name a checkout, or its URL, with --source")
    }

    private static func isCheckout(_ directory: PathBytes) -> Bool {
        FileManager.default.fileExists(atPath: "\(directory)/Sources/Libraries/PluginProtocol/Plugin.swift")
    }
}

/// The files of a new plugin, which counts the lines of a file.
///
/// The templates are in `Resources`. A line that starts with `@bash`, `@python` or `@swift` is only for that language.
struct PluginSkeleton {
    enum Language: String, CaseIterable {
        case bash, python, swift
    }

    /// The location of Alight's source for a package in Swift.
    enum Source {
        case directory(String)
        case address(String)
    }

    struct File {
        /// The path relative to the plugin's directory.
        var path: String
        var text: String
        var isExecutable = false
    }

    let name: String
    let language: Language
    /// The source, for a plugin in Swift.
    let source: Source?

    var files: [File] {
        let program: [File]
        switch language {
        case .bash: program = [File(path: name, text: text(PackageResources.plugin_sh), isExecutable: true)]
        case .python: program = [File(path: name, text: text(PackageResources.plugin_py), isExecutable: true)]
        case .swift:
            program = [
                File(path: "Package.swift", text: text(PackageResources.package_swift_txt)),
                File(path: "Sources/\(name)/\(type).swift", text: text(PackageResources.plugin_swift_txt)),
                File(path: ".gitignore", text: ".build/\n"),
            ]
        }
        return program + [
            File(path: "plugin.yaml", text: text(PackageResources.plugin_yaml_txt)),
            File(path: "README.md", text: text(PackageResources.readme_md_txt)),
            File(path: "request.json", text: text(PackageResources.request_json)),
            File(path: "response.json", text: text(PackageResources.response_json)),
            File(path: "testdata/letter.txt", text: "Dear reader,\n\nthat is all.\n"),
            File(path: "test", text: text(PackageResources.test_sh_txt), isExecutable: true),
        ]
    }

    private func text(_ template: [UInt8]) -> String {
        var lines: [Substring] = []
        for line in String(decoding: template, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false) {
            if let only = Language.allCases.first(where: { line.hasPrefix("@\($0.rawValue)") }) {
                if only == language { lines.append(line.dropFirst("@\(only.rawValue) ".count)) }
            } else {
                lines.append(line)
            }
        }
        return lines.joined(separator: "\n").replacing("@NAME@", with: name).replacing("@TYPE@", with: type)
            .replacing("@DEPENDENCY@", with: dependency)
    }

    /// The name as a type: `LineCount` for `line-count`.
    private var type: String {
        name.split { $0 == "-" || $0 == "_" }.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }

    private var dependency: String {
        switch source {
        case .address(let address): return ".package(url: \"\(address)\", from: \"0.1.0\")"
        case .directory(let directory):
            let text = directory.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            return ".package(name: \"alight\", path: \"\(text)\")"
        case nil: return ".package(name: \"alight\", path: \"../..\")"
        }
    }
}
