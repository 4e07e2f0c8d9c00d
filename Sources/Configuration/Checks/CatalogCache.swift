import Rules
import System

/// Queries the catalog once per name, since a query may read the disk or start a plugin.
final class CatalogCache {
    private let catalog: any HandlerCatalog
    private var found: [PathBytes: [String: Result<HandlerDescription, HandlerProblem>]] = [:]
    private var names: [PathBytes: [String]] = [:]

    init(_ catalog: any HandlerCatalog) { self.catalog = catalog }

    func find(_ name: String, from directory: PathBytes) -> Result<HandlerDescription, HandlerProblem> {
        if let known = found[directory]?[name] { return known }
        let result = catalog.find(name, from: directory)
        found[directory, default: [:]][name] = result
        return result
    }

    func names(from directory: PathBytes) -> [String] {
        if let known = names[directory] { return known }
        let list = catalog.names(from: directory)
        names[directory] = list
        return list
    }
}
