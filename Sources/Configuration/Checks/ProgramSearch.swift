import Glibc
import Rules
import System

/// Finds the program of an `exec` action.
enum ProgramSearch {
    /// Returns the absolute path of a program.
    ///
    /// A name with a slash is a path relative to the directory of the rules file. A name without one is searched for
    /// in the `PATH` of the program.
    ///
    /// - Parameters:
    ///   - name: The program; a leading `~/` is expanded.
    ///   - written: The program as it is in the rules file.
    ///   - directory: The directory of the rules file.
    ///   - searchPath: The `PATH` of the program; nil if it differs from event to event.
    /// - Returns: The path.
    /// - Throws: The reason why there is none.
    static func find(
        _ name: [UInt8], written: String, from directory: PathBytes, in searchPath: [UInt8]?
    ) throws(Problem) -> PathBytes {
        let program = quoted(written)
        let isPath = name.contains(.slash)
        guard let searchPath = isPath ? [] : searchPath else {
            throw Problem(
                "program \(program) cannot be searched for: the 'PATH' in 'env' contains a placeholder",
                help: "write the path of the program, or a 'PATH' without placeholders")
        }
        let candidates =
            isPath
            ? [directory.resolving(name).normalized]
            : searchPath.split(separator: UInt8(ascii: ":")).map {
                directory.resolving($0 + [.slash] + name).normalized
            }
        for path in candidates where !name.isEmpty {
            switch FileReading.kind(of: path) {
            case .file where path.withCString { access($0, X_OK) } == 0: return path
            case .directory where isPath:
                throw Problem("\(program) is a directory, not a program")
            case .other(let noun) where isPath:
                throw Problem("\(program) is \(noun), not a program")
            case .file where isPath:
                throw Problem("\(program) is not executable", help: "make it executable with 'chmod +x'")
            default: break
            }
        }
        guard isPath else {
            throw Problem(
                "program \(program) not found in \(PathBytes(searchPath))",
                help: written.contains(" ")
                    ? "write each argument as a separate element" : "install it, or write its path with a '/'")
        }
        throw Problem(
            "program \(program) not found",
            help: written.hasPrefix("/") ? nil : "a path with a '/' is relative to the directory of the rules file")
    }
}
