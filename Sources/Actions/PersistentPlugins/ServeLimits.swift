/// The timeouts and limits of a conversation with a serving process.
package struct ServeLimits: Sendable, Hashable {
    /// The timeout for `ready`.
    package var ready = Duration.seconds(10)
    /// The time without a request before a `ping`.
    package var ping = Duration.seconds(30)
    /// The timeout for the `pong`.
    package var pong = Duration.seconds(10)
    /// The time without a request before the process is stopped.
    package var idle = Duration.seconds(300)
    /// The timeout for the answer to a cancelled request, and for the exit.
    package var grace = Duration.seconds(10)
    /// The maximum number of requests of one process.
    package var requests = 10_000
    /// The maximum age of one process.
    package var age = Duration.seconds(86_400)
    /// The number of lines that are not JSON at which a process is terminated.
    package var unreadable = 10
    /// The maximum number of unknown lines between two answers.
    package var unknown = 1_000
    /// The maximum number of requests at once.
    package var window = 256

    package init() {}
}
