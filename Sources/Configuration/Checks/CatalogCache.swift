import Rules
import System

/// Queries the catalog once per name, since a query may read the disk or start a plugin.
final class CatalogCache {
    private let catalog: any HandlerCatalog
    private var found: [PathBytes: [String: Result<HandlerDescription, HandlerProblem>]] = [:]
    private var names: [PathBytes: [String]] = [:]

    init(_ catalog: any HandlerCatalog) { self.catalog = catalog }

    func find(_ name: String, from folder: PathBytes) -> Result<HandlerDescription, HandlerProblem> {
        if let known = found[folder]?[name] { return known }
        let result = catalog.find(name, from: folder)
        found[folder, default: [:]][name] = result
        return result
    }

    func names(from folder: PathBytes) -> [String] {
        if let known = names[folder] { return known }
        let list = catalog.names(from: folder)
        names[folder] = list
        return list
    }
}
