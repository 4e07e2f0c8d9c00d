import Glibc
package import System

/// The failure of a driver's run.
package struct DriverFailure: Error {
    package var text: String

    package init(text: String) { self.text = text }
}

/// The program of a driver, which performs one run from a seed or is a worker of it.
package enum DriverProgram {
    /// Parses the command line and performs the run; an invalid command line exits with 2.
    package static func main(help: String, _ body: ([String]) throws(OptionValue.Invalid) -> Void) {
        let words = Array(CommandLine.arguments.dropFirst())
        guard words != ["--help"] else { return print(help) }
        do throws(OptionValue.Invalid) {
            try body(words)
        } catch {
            print("\(error.message)\n\(help)")
            exit(2)
        }
    }

    /// Performs a run and prints its summary; a failed run keeps its directory and exits with 1.
    ///
    /// - Parameters:
    ///   - title: A short title of the run.
    ///   - command: The command that repeats it.
    ///   - directory: The directory of the run; by default, a new one below `/tmp` with the name of the driver.
    ///   - name: The name of the driver.
    ///   - body: Performs the run and returns its summary.
    package static func run(
        _ title: String, _ command: String, in directory: PathBytes?, name: String,
        _ body: (PathBytes) throws(DriverFailure) -> String
    ) {
        let directory = directory ?? TestFile.makeTemporaryDirectory(name)
        do throws(DriverFailure) {
            print(try body(directory))
            TestFile.removeTree(directory)
        } catch {
            print("FAILED: \(title): \(error.text)")
            print("\nto repeat it: \(command)\nits files: \(directory)")
            exit(1)
        }
    }
}
