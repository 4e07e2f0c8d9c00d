import CTestKit
import Glibc
import System
import TestKit

/// The state of all files below a directory.
enum TreeContents {
    /// Returns the content of each file in the notation of the recorder; paths are relative.
    static func read(_ directory: PathBytes) -> [PathBytes: Run.Content] {
        var found: [PathBytes: Run.Content] = [:]
        visit(directory) { path, status in
            guard status.st_mode & S_IFMT == S_IFREG else { return }
            var content = ctk_content()
            guard path.withCString({ ctk_read_content($0, &content) }) == 0 else { return }
            let digits = String(content.sum, radix: 16)
            let sum = String(repeating: "0", count: 16 - digits.count) + digits
            found[PathBytes(path.relative(to: directory) ?? path.bytes[...])] = "\(sum):\(content.size)"
        }
        return found
    }

    /// Returns the temporary files that only Alight creates, for incomplete output.
    static func temporaries(_ directory: PathBytes) -> [PathBytes] {
        var found: [PathBytes] = []
        visit(directory) { path, _ in
            if path.lastComponent.suffix(11).elementsEqual(".alight-tmp".utf8) { found.append(path) }
        }
        return found
    }

    private static func visit(_ directory: PathBytes, _ body: (PathBytes, stat) -> Void) {
        for name in TestFile.names(in: directory) {
            let path = directory.appending(name)
            var status = stat()
            guard path.withCString({ lstat($0, &status) }) == 0 else { continue }
            body(path, status)
            if status.st_mode & S_IFMT == S_IFDIR { visit(path, body) }
        }
    }
}
