import Rules
import System

/// Queries the catalog once per name, since a query may read the disk or start a plugin.
final class CatalogCache {
    private struct Key: Hashable {
        var name: String
        var folder: PathBytes
    }

    private let catalog: any HandlerCatalog
    private var found: [Key: Result<HandlerDescription, HandlerProblem>] = [:]
    private var names: [PathBytes: [String]] = [:]

    init(_ catalog: any HandlerCatalog) { self.catalog = catalog }

    func find(_ name: String, from folder: PathBytes) -> Result<HandlerDescription, HandlerProblem> {
        let key = Key(name: name, folder: folder)
        if let known = found[key] { return known }
        let result = catalog.find(name, from: folder)
        found[key] = result
        return result
    }

    func names(from folder: PathBytes) -> [String] {
        if let known = names[folder] { return known }
        let list = catalog.names(from: folder)
        names[folder] = list
        return list
    }
}
