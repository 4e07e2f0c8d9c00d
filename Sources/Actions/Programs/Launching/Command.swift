import FileEvents
package import System

/// A program to be run once, with all that it gets.
package struct Command: Sendable {
    /// What becomes of what the program prints.
    package enum Output: Sendable, Hashable {
        /// It is kept for the caller; a program that prints more bytes than `limit` is ended.
        case collected(limit: Int)
        /// It is reported line by line, as stderr always is.
        case reported
    }

    /// Absolute; nothing is searched for.
    package var executable: PathBytes
    /// What follows the program's name.
    package var arguments: [[UInt8]]
    /// The whole environment; nothing of Alight's own is inherited.
    package var environment: [(name: String, value: [UInt8])]
    /// The working folder.
    package var directory: ProgramPath
    /// What stands on standard input; a program need not read it.
    package var input: [UInt8]
    package var output: Output
    /// How long the program may run.
    package var timeout: Duration
    /// How long the program may take to end after SIGTERM.
    package var grace: Duration
    /// How long processes that the program left behind may go on after its end.
    package var linger: Duration
    /// What the program may use and reach, and as whom it runs.
    package var confinement = ProgramConfinement()
    /// Called before the program starts; false to give up.
    var mayStart: @Sendable () -> Bool = { true }
    /// Called when the time-out is reached, before the program is asked to end.
    var whenOverdue: @Sendable () -> Void = {}

    package init(
        executable: PathBytes, arguments: [[UInt8]] = [], environment: [(name: String, value: [UInt8])] = [],
        directory: ProgramPath = "/", input: [UInt8] = [], output: Output = .collected(limit: 1 << 20),
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
