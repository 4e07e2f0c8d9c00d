import Globbing
import Rules
import System

// Which files of a rule run together, and when.
extension RuleDecoder {
    /// Parses tags: words of letters, digits, `-`, `_` and `.`, which need no quotes in a shell.
    func tags(_ entry: YAMLNode.Entry) -> [String]? {
        let nodes = entry.value.text == nil ? elements(entry, noun: "nightly", allowsEmpty: true) : [entry.value]
        return nodes?.compactMap { node in
            let range = entry.value.text == nil ? mark(node) : mark(entry)
            guard let tag = text(node, name: "a tag", at: range) else { return nil }
            let isPlain = tag.utf8.allSatisfy { $0.isAlphanumeric || "-_.".utf8.contains($0) }
            guard isPlain, (1...64).contains(tag.utf8.count), !tag.hasPrefix("-") else {
                return reject(
                    "invalid tag \(quoted(tag))", at: range,
                    help: "write a word of letters, digits, '-', '_' and '.', such as 'nightly'")
            }
            return tag
        }
    }

    /// Parses one string with hours, or several.
    func window(_ entry: YAMLNode.Entry) -> RunWindow? {
        let help = "write hours such as '22:00-06:00'"
        let values = values(entry)
        if values.isEmpty { return reject("'window' is empty", at: mark(entry), help: "\(help), or remove the key") }
        let spans = values.map { node, range in
            parsed(node, name: "'window'", at: range, help: help, WindowText.parse)
        }
        return spans.complete().map { RunWindow($0) }
    }

    // MARK: - Ready files

    func doneFile(_ entry: YAMLNode.Entry) -> Template? {
        guard let text = text(entry) else { return nil }
        let form = "write it relative to the directory of the file, such as '${name}.done'"
        guard !text.hasPrefix("/"), !text.hasPrefix("~") else {
            return reject("'done_file' must be relative, not \(quoted(text))", at: mark(entry), help: form)
        }
        guard let template = nameTemplate(entry, text) else { return nil }
        let sample: PathBytes = "/Qx7q/m3Vw.k9Zt"
        var ready = Readiness()
        ready.doneFile = template
        if template.parts.isEmpty || ready.marker(of: sample) == sample {
            return reject("'done_file' is the file itself", at: mark(entry), help: form)
        }
        return template
    }

    /// Parses a string whose placeholders depend only on the last path component.
    private func nameTemplate(_ entry: YAMLNode.Entry, _ text: String) -> Template? {
        guard let template = template(text, entry.value, step: 0) else { return nil }
        guard Set(template.placeholders).isSubset(of: Placeholder.ofName) else {
            return reject(
                "\(quoted(entry.name)) accepts only ${name}, ${stem} and ${extension}", at: mark(entry),
                help: "write a path that depends only on the name of the file")
        }
        return template
    }

    // MARK: - Sets

    func group(_ entry: YAMLNode.Entry) -> Template? {
        guard let text = text(entry, help: "write '\"${stem}\"'"), let template = nameTemplate(entry, text) else {
            return nil
        }
        guard !template.placeholders.isEmpty else {
            return reject(
                "'group' is the same for all files of a directory", at: mark(entry),
                help: "write '${stem}' for files whose names differ only in the extension")
        }
        return template
    }

    /// Parses extensions, or globs for names.
    func required(_ entry: YAMLNode.Entry) -> [(kind: Grouping.Kind, mark: Range<Int>)]? {
        list(entry, of: "a kind in 'require'", example: "mkv, nfo") { text, node in
            let isGlob = text.utf8.contains { "*?[{".utf8.contains($0) }
            guard !text.isEmpty, !text.utf8.contains(.slash) else {
                return reject(
                    "invalid kind \(quoted(text)) in 'require'", at: mark(node),
                    help: "write an extension, such as 'nfo', or a glob for names, such as '*-cover.*'")
            }
            let word = text.hasPrefix(".") ? text.dropFirst() : text[...]
            let pattern = isGlob ? Array(text.utf8) : Array("*.".utf8) + Glob.escaped(Array(word.utf8))
            do throws(GlobError) {
                let glob = try Glob(pattern, options: Glob.Options(matchesHidden: true))
                return (Grouping.Kind(text: isGlob ? text : String(word), glob: glob), mark(node))
            } catch { return reject(error.message, at: mark(node, offset: error.offset, length: 1), help: error.help) }
        }
    }
}
