import ArgumentParser
import Foundation
import Glibc
import Plugins
import Rules
import System

/// `alight plugins new`: copies the files in `Skeletons/Resources`, a plugin that counts the lines of a file.
struct NewPluginCommand: ParsableCommand {
    enum Language: String, CaseIterable, ExpressibleByArgument { case bash, python, swift }

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
    var language: Language

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
        let here = PathBytes.current
        let location = into.hasPrefix("/") ? PathBytes(into) : here.appending(Array(into.utf8))
        let directory = location.normalized.appending(name)
        try copy(to: directory, dependency: language == .swift ? try dependency(here) : "")
        let test = "alight plugins test \(ShellWord.quoted(directory.bytes))"
        let build =
            language == .swift
            ? "swift build -c release --package-path \(ShellWord.quoted(directory.bytes)), then " : ""
        Output.standard.write("wrote '\(Display.path(directory))'; try it with: \(build)\(test)")
    }

    /// The files of the plugin: their paths and contents.
    private var files: KeyValuePairs<String, [UInt8]> {
        switch language {
        case .bash: [name: PackageResources.plugin_sh, "plugin.yaml": PackageResources.bash_yaml]
        case .python: [name: PackageResources.plugin_py, "plugin.yaml": PackageResources.python_yaml]
        case .swift:
            [
                "Package.swift": PackageResources.package_swift_txt,
                "Sources/\(name)/LineCount.swift": PackageResources.plugin_swift_txt,
                ".gitignore": Array(".build/\n".utf8), "plugin.yaml": PackageResources.swift_yaml,
            ]
        }
    }

    /// The files of a plugin in any language.
    private static let commonFiles: KeyValuePairs = [
        "README.md": PackageResources.readme_md_txt, "request.json": PackageResources.request_json,
        "response.json": PackageResources.response_json, "testdata/letter.txt": PackageResources.letter_txt,
        "test": PackageResources.test_sh_txt,
    ]

    private func copy(to directory: PathBytes, dependency: String) throws {
        let path = directory.description
        guard !FileManager.default.fileExists(atPath: path) else {
            throw Exit(.runtimeError, error: "'\(path)' already exists", help: "choose another name, or remove it")
        }
        do {
            for (file, content) in Array(files) + Self.commonFiles {
                let target = URL(fileURLWithPath: path).appendingPathComponent(file)
                try FileManager.default.createDirectory(
                    at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
                let text = String(decoding: content, as: UTF8.self).replacing("@NAME@", with: name)
                    .replacing("@DEPENDENCY@", with: dependency)
                try Data(text.utf8).write(to: target, options: .withoutOverwriting)
                if text.hasPrefix("#!") { _ = chmod(target.path, 0o755) }
            }
        } catch {
            throw Exit(
                .runtimeError, error: "cannot write '\(path)': \(error.localizedDescription)",
                help: "name a directory that you may write to with --into")
        }
    }

    /// Returns the dependency of the package on Alight's source.
    private func dependency(_ here: PathBytes) throws -> String {
        if let source, source.contains("://") { return ".package(url: \"\(source)\", from: \"0.1.0\")" }
        let start = source.map { here.resolving($0.utf8).normalized } ?? here
        guard let checkout = (source == nil ? Array(start.andParents) : [start]).first(where: Self.isCheckout) else {
            throw source == nil
                ? Exit(
                    .usage,
                    error: "a plugin in Swift is built with Alight's library PluginProtocol, which was not found",
                    help: "name a checkout, or its URL, with --source")
                : Exit(
                    .usage, error: "'\(start)' is not a checkout of Alight",
                    help: "name the directory with its Package.swift")
        }
        let text = checkout.description.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        return ".package(name: \"alight\", path: \"\(text)\")"
    }

    private static func isCheckout(_ directory: PathBytes) -> Bool {
        FileManager.default.fileExists(atPath: "\(directory)/Sources/Libraries/PluginProtocol/Plugin.swift")
    }
}
