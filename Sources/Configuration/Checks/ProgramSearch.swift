import Glibc
import System

/// Finds the program of an `exec` action.
enum ProgramSearch {
    enum Problem: Error {
        case notInFolders([String])
        case missing
        case isNoFile(String)
        case isNotExecutable

        func message(for program: String) -> String {
            switch self {
            case .notInFolders(let folders):
                "program \(quoted(program)) not found in \(folders.joined(separator: ":"))"
            case .missing: "program \(quoted(program)) not found"
            case .isNoFile(let noun): "\(quoted(program)) is \(noun), not a program"
            case .isNotExecutable: "\(quoted(program)) is not executable"
            }
        }

        func help(for program: String) -> String? {
            switch self {
            case .notInFolders:
                program.contains(" ")
                    ? "write each argument as a separate element" : "install it, or write its path with a '/'"
            case .missing:
                program.hasPrefix("/") ? nil : "a path with a '/' is relative to the directory of the rules file"
            case .isNoFile: nil
            case .isNotExecutable: "make it executable with 'chmod +x'"
            }
        }
    }

    /// Returns the absolute path of a program.
    ///
    /// A name with a slash is a path relative to the directory of the rules file. A name without one is searched for
    /// in the given directories.
    static func find(_ name: [UInt8], from folder: PathBytes, in folders: [String]) -> Result<PathBytes, Problem> {
        guard name.contains(.slash) else {
            for candidate in folders.map({ PathBytes($0).appending(name) })
            where check(candidate) == nil && !name.isEmpty {
                return .success(candidate)
            }
            return .failure(.notInFolders(folders))
        }
        let path = folder.resolving(name).normalized
        return check(path).map { .failure($0) } ?? .success(path)
    }

    private static func check(_ path: PathBytes) -> Problem? {
        switch FileReading.kind(of: path) {
        case .missing: .missing
        case .folder: .isNoFile("a directory")
        case .other(let noun): .isNoFile(noun)
        case .file: path.withCString { access($0, X_OK) } == 0 ? nil : .isNotExecutable
        }
    }
}
