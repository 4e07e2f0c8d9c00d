package import ActionAPI
package import System

/// A program to run once, with everything that it gets.
package struct Command: Sendable {
    /// The handling of what the program prints.
    package enum Output: Sendable, Hashable {
        /// It is collected for the caller; a program that prints more bytes than `limit` is terminated.
        case collected(limit: Int)
        /// It is reported line by line, as stderr always is.
        case reported
    }

    /// The absolute path of the executable; no directories are searched.
    package var executable: PathBytes
    /// The arguments after the program's name.
    package var arguments: [[UInt8]]
    /// The whole environment; nothing of Alight's own is inherited.
    package var environment: [(name: String, value: [UInt8])]
    /// The working directory.
    package var directory: ProgramPath
    /// Whether the working directory is entered before the user is changed, who need not be able to reach it.
    package var entersDirectoryFirst = false
    /// The bytes for standard input; a program need not read them.
    package var input: [UInt8]
    /// Whether standard input is a pipe with `input`; otherwise it is `/dev/null`.
    package var hasInput = true
    package var output: Output
    /// How long the program may run.
    package var timeout: Duration
    /// How long the program may take to exit after SIGTERM.
    package var grace: Duration
    /// How long processes that the program left behind may continue after its exit.
    package var linger: Duration
    /// The resources and files that the program may use, and the user that it runs as.
    package var confinement = ProgramConfinement()
    /// Called when the timeout is reached, before the program is asked to exit.
    package var whenOverdue: @Sendable () -> Void = {}

    package init(
        executable: PathBytes, arguments: [[UInt8]] = [], environment: [(name: String, value: [UInt8])] = [],
        directory: ProgramPath = "/", input: [UInt8] = [], output: Output = .collected(limit: ResponseReader.limit),
        timeout: Duration, grace: Duration = .seconds(10), linger: Duration = .seconds(2)
    ) {
        self.executable = executable
        self.arguments = arguments
        self.environment = environment
        self.directory = directory
        self.input = input
        self.output = output
        self.timeout = timeout
        self.grace = grace
        self.linger = linger
    }
}
