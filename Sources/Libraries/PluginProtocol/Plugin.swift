/// A plugin for Alight, written in Swift.
///
/// The type is the whole program: mark it `@main`, and it speaks the protocol in
/// all of its verbs.
///
/// ```swift
/// import PluginProtocol
///
/// @main struct Count: Plugin {
///     func handle(_ request: PluginRequest) async throws -> PluginResponse {
///         guard let event = request.events.first else { throw PluginFailure.failed("no event") }
///         guard let file = fopen(event.path, "r") else { throw PluginFailure.skipped("it is gone") }
///         …
///         return PluginResponse(.succeeded, message: "\(lines) lines")
///     }
/// }
/// ```
///
/// What `handle` throws becomes an outcome: a ``PluginFailure`` the one that it
/// names, a `CancellationError` `retry`, anything else `failed`.
///
/// Standard output belongs to the protocol. What `print` writes goes to standard
/// error, and so into the log.
public protocol Plugin: Sendable {
    init()

    /// What the plugin answers to `describe`; nil, as without it, when a `plugin.yaml` beside the executable says it.
    static var description: PluginDescription? { get }

    /// Requests that one `serve` process takes at once; without it what ``description`` says, else 1.
    ///
    /// Where a `plugin.yaml` describes the plugin, say here what it says there.
    static var concurrent: Int { get }

    /// Does the work for one request, which has one event, or several if the plugin is described with `batch`.
    ///
    /// In `serve` it runs several times at once, each time in a task of its own. That
    /// task is cancelled when the request's time is up, or by SIGTERM: look at
    /// `Task.isCancelled` or call `Task.checkCancellation()` where the work is long.
    /// A plugin that goes on for 5 s after SIGTERM is ended.
    ///
    /// It may be called twice for one job, because Alight can lose power between the
    /// work and the entry that records it; ``PluginRequest/id`` is the same then.
    func handle(_ request: PluginRequest) async throws -> PluginResponse
}

extension Plugin {
    public static var description: PluginDescription? { nil }

    public static var concurrent: Int { description?.concurrent ?? 1 }

    /// Does what the first argument asks for, and ends the program.
    public static func main() async { await PluginMain(Self()).main() }
}
