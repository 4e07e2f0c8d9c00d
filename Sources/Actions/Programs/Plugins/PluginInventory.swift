import FileEvents
import Foundation
package import Rules
package import System

/// A plugin in one of the places where plugins are looked for, or what was meant to be one.
package struct PluginListing: Sendable {
    /// What is taken instead of a plugin of the same name.
    package enum Shadow: Sendable, Hashable {
        case builtIn
        case plugin(PathBytes)
    }

    /// The word that `use:` would find it by.
    package var name: String
    /// Its folder, or the executable itself.
    package var location: PathBytes
    /// The plugin; nil when it can't be described.
    package var plugin: Plugin?
    /// Why it can't be used; empty when it can.
    package var problems: [HandlerProblem]
    /// Why it isn't used though it may be sound.
    package var shadow: Shadow?
}

extension PluginDiscovery {
    /// All plugins in the places for a rules file in that folder, in the order of the places, also those that are
    /// broken or shadowed.
    ///
    /// - Parameters:
    ///   - folder: The absolute folder of the rules file.
    ///   - first: Places that are looked through before those.
    ///   - builtIn: The names of built-in handlers, which win.
    /// - Returns: Those that are there; a place that is not is no error.
    package func inventory(
        from folder: PathBytes, first: [PathBytes] = [], builtIn: Set<String>
    ) -> [PluginListing] {
        var taken: [String: PathBytes] = [:]
        var seen: Set<PathBytes> = []
        var listings: [PluginListing] = []
        for place in first + places(from: folder) where seen.insert(place.normalized).inserted {
            for name in entries(of: place) {
                let path = place.appending(name)
                var listing: PluginListing
                if kind(of: path) != nil {
                    listing = self.listing(of: path, called: name)
                    listing.shadow = taken[name].map { .plugin($0) }
                    // `find` takes the first that is there, be it broken or not.
                    if taken[name] == nil { taken[name] = path }
                } else if isMeantAsPlugin(path) {
                    listing = PluginListing(name: name, location: path, problems: [nearMiss(path, name: name)])
                    listing.shadow = taken[name].map { .plugin($0) }
                } else {
                    continue
                }
                if builtIn.contains(name) { listing.shadow = .builtIn }
                listings.append(listing)
            }
        }
        return listings
    }

    /// The plugin at that path, or why there is none; `name` is the word that it was looked for by, nil for a path.
    package func listing(of path: PathBytes, called name: String?) -> PluginListing {
        let shown = name ?? String(decoding: path.lastComponent, as: UTF8.self)
        switch plugin(at: path) {
        case .success(let plugin):
            let problems = problems(of: plugin, called: name)
            return PluginListing(name: shown, location: path, plugin: plugin, problems: problems)
        case .failure(let problem): return PluginListing(name: shown, location: path, problems: [problem])
        }
    }

    private func entries(of place: PathBytes) -> [String] {
        guard let path = place.text, let entries = try? FileManager.default.contentsOfDirectory(atPath: path) else {
            return []
        }
        return entries.filter { !$0.hasPrefix(".") }.sorted()
    }

    /// Whether something that is no plugin looks as if it should be one: a script that may not be executed, a folder
    /// with an executable or a description of another name.
    ///
    /// A README beside the plugins doesn't, nor does a folder of modules.
    private func isMeantAsPlugin(_ path: PathBytes) -> Bool {
        var status = stat()
        guard path.withCString({ stat($0, &status) }) == 0 else { return false }
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
            guard descriptor >= 0 else { return false }
            defer { close(descriptor) }
            var start = [UInt8](repeating: 0, count: 2)
            return read(descriptor, &start, 2) == 2 && start == Array("#!".utf8)
        case S_IFDIR:
            return entries(of: path).contains { entry in
                entry == "plugin.yml" || entry == "plugin.json"
                    || ExecutableCheck.problem(with: path.appending(entry)) == nil
            }
        default: return false
        }
    }
}
