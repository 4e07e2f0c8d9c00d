import Glibc
import Rules
import System

/// Finds the program of an `exec` action.
enum ProgramSearch {
    /// Returns the absolute path of a program.
    ///
    /// A name with a slash is a path relative to the directory of the rules file. A name without one is searched for
    /// in `Action.searchPath`.
    ///
    /// - Parameters:
    ///   - name: The program; a leading `~/` is expanded.
    ///   - written: The program as it is in the rules file.
    ///   - directory: The directory of the rules file.
    /// - Returns: The path.
    /// - Throws: The reason why there is none.
    static func find(_ name: [UInt8], written: String, from directory: PathBytes) throws(HandlerProblem) -> PathBytes {
        let program = quoted(written)
        let isPath = name.contains(.slash)
        let candidates =
            isPath
            ? [directory.resolving(name).normalized]
            : Action.searchPath.split(separator: ":").map { PathBytes(String($0)).appending(name) }
        for path in candidates where !name.isEmpty {
            switch FileReading.kind(of: path) {
            case .file where path.withCString { access($0, X_OK) } == 0: return path
            case .directory where isPath:
                throw HandlerProblem(message: "\(program) is a directory, not a program", help: nil)
            case .other(let noun) where isPath:
                throw HandlerProblem(message: "\(program) is \(noun), not a program", help: nil)
            case .file where isPath:
                throw HandlerProblem(
                    message: "\(program) is not executable", help: "make it executable with 'chmod +x'")
            default: break
            }
        }
        guard isPath else {
            throw HandlerProblem(
                message: "program \(program) not found in \(Action.searchPath)",
                help: written.contains(" ")
                    ? "write each argument as a separate element" : "install it, or write its path with a '/'")
        }
        throw HandlerProblem(
            message: "program \(program) not found",
            help: written.hasPrefix("/") ? nil : "a path with a '/' is relative to the directory of the rules file")
    }
}
