@_exported public import JSON

/// A plugin for Alight, written in Swift.
///
/// The type is the whole program: mark it `@main`, and it implements all verbs of
/// the protocol.
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
/// An error thrown by `handle` becomes an outcome: a ``PluginFailure`` the one that
/// it contains, a `CancellationError` `retry`, any other error `failed`.
///
/// Standard output is reserved for the protocol. The output of `print` goes to
/// standard error, and so into the log.
public protocol Plugin: Sendable {
    init()

    /// The answer to `describe`; nil, the default, if a `plugin.yaml` next to the executable describes the plugin.
    static var description: PluginDescription? { get }

    /// The number of requests that one `serve` process handles at once; by default the value in ``description``, else
    /// 1.
    ///
    /// If a `plugin.yaml` describes the plugin, return the value that it sets.
    static var concurrent: Int { get }

    /// Handles one request, which has one event, or several if the plugin is described with `batch`.
    ///
    /// In `serve` it runs several times at once, each time in its own task. The task is
    /// cancelled when the request's timeout is over, or by SIGTERM: check
    /// `Task.isCancelled` or call `Task.checkCancellation()` during long work. A plugin
    /// that is still running 5 s after SIGTERM is terminated.
    ///
    /// It may be called twice for one job, because Alight can lose power between the
    /// work and the entry that records it; ``PluginRequest/id`` is then the same.
    func handle(_ request: PluginRequest) async throws -> PluginResponse
}

extension Plugin {
    public static var description: PluginDescription? { nil }

    public static var concurrent: Int { description?.concurrent ?? 1 }

    /// Runs the verb given by the first argument, and exits.
    public static func main() async { await PluginMain(Self()).main() }
}

/// The supported versions of the plugin protocol.
public enum ProtocolVersion {
    /// The version in requests.
    public static let current = 1
}
