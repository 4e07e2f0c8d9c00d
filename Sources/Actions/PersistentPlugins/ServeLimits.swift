/// How long a conversation waits for what, and how much it takes.
package struct ServeLimits: Sendable, Hashable {
    /// For `ready`.
    package var ready = Duration.seconds(10)
    /// Without a request until a `ping`.
    package var ping = Duration.seconds(30)
    /// For the `pong`.
    package var pong = Duration.seconds(10)
    /// Without a request until the end.
    package var idle = Duration.seconds(300)
    /// For the answer to a cancelled request, and for the end.
    package var grace = Duration.seconds(10)
    /// Requests of one process.
    package var requests = 10_000
    /// Age of one process.
    package var age = Duration.seconds(86_400)
    /// Lines that are not JSON.
    package var unreadable = 10
    /// Lines between two answers that mean nothing to Alight.
    package var unknown = 1_000
    /// How long a process that has work stays when another environment needs its slot.
    package var slice = Duration.seconds(1)
    /// Requests at once.
    package var window = 256

    package init() {}
}
