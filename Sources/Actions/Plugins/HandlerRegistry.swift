package import ActionAPI
package import Rules
package import System

/// The handlers that `use:` can name: the built-in ones, and the plugins that are found.
///
/// A built-in handler takes precedence over a plugin of the same name.
package struct HandlerRegistry: HandlerCatalog {
    private let builtIn: [String: any Handler]
    private let discovery: PluginDiscovery
    var host: PluginHost { discovery.host }

    /// - Parameters:
    ///   - builtIn: The built-in handlers.
    ///   - discovery: The discovery of plugins.
    package init(builtIn: [any Handler], discovery: PluginDiscovery) {
        self.builtIn = Dictionary(builtIn.map { ($0.summary.reference.name, $0) }) { first, _ in first }
        self.discovery = discovery
    }

    /// The descriptions of the built-in handlers, sorted by name.
    package var builtInHandlers: [HandlerDescription] {
        builtIn.values.map(\.summary).sorted { $0.reference.name < $1.reference.name }
    }

    package func find(_ name: String, from directory: PathBytes) -> Result<HandlerDescription, Problem> {
        if let handler = builtIn[name] { return .success(handler.summary) }
        if let found = discovery.find(name, from: directory) { return found.map(\.summary) }
        let help: String
        if name.contains("/") {
            help = "there is no plugin at '\(directory.appending(name).normalized)'"
        } else if let nearest = Spelling.nearest(to: name, in: names(from: directory)) {
            help = "write '\(nearest)'; the names are \(names(from: directory).joined(separator: ", "))"
        } else {
            let locations = discovery.locations(from: directory).map { "'\($0)'" }.joined(separator: ", ")
            help =
                "built-in handlers: \(builtIn.keys.sorted().joined(separator: ", ")); plugins are searched for in "
                + "\(locations)"
        }
        return .failure(Problem("no handler or plugin '\(name)'", help: help))
    }

    package func names(from directory: PathBytes) -> [String] {
        Set(builtIn.keys).union(discovery.names(from: directory)).sorted()
    }

    /// Returns the handler that `find` described, or the problem of a plugin that is no longer usable.
    package func handler(for reference: HandlerReference) -> Result<any Handler, Problem> {
        if let location = reference.location {
            return discovery.plugin(at: location).map { PluginHandler(plugin: $0, host: host) }
        }
        if let handler = builtIn[reference.name] { return .success(handler) }
        return .failure(Problem("no handler '\(reference.name)'"))
    }
}
