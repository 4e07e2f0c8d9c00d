/// The files of a new plugin, which counts the lines of a file.
///
/// The templates are in `Resources`. A line that starts with `@bash`, `@python` or `@swift` is only for that language.
struct PluginSkeleton {
    enum Language: String, CaseIterable {
        case bash, python, swift
    }

    /// The location of Alight's source for a package in Swift.
    enum Source {
        case folder(String)
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
        case .folder(let folder):
            let text = folder.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            return ".package(name: \"alight\", path: \"\(text)\")"
        case nil: return ".package(name: \"alight\", path: \"../..\")"
        }
    }
}
