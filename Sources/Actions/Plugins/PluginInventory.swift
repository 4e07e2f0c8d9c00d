import ActionAPI
package import Rules
package import System

/// A plugin in one of the directories that are searched for plugins, or what appears to be meant as one.
package struct PluginListing: Sendable {
    /// The handler that is used instead of a plugin of the same name.
    package enum Shadow: Sendable, Hashable {
        case builtIn
        case plugin(PathBytes)
    }

    /// The name by which `use:` would find it.
    package var name: String
    /// The directory of the plugin, or the executable itself.
    package var location: PathBytes
    /// The plugin; nil when it cannot be described.
    package var plugin: InstalledPlugin?
    /// The reasons why it cannot be used; empty when it can.
    package var problems: [Problem]
    /// The handler that takes precedence over it, even if it is valid.
    package var shadow: Shadow?
}

extension PluginDiscovery {
    /// Returns all plugins for a rules file in the given directory, in search order, including broken and shadowed
    /// ones.
    ///
    /// - Parameters:
    ///   - directory: The absolute path of the rules file's directory.
    ///   - first: The directories that are searched before the others.
    ///   - builtIn: The names of built-in handlers, which take precedence.
    /// - Returns: The plugins that were found; a directory that does not exist is not an error.
    package func inventory(from directory: PathBytes, first: [PathBytes] = [], builtIn: Set<String>) -> [PluginListing]
    {
        var taken: [String: PathBytes] = [:]
        var seen: Set<PathBytes> = []
        var listings: [PluginListing] = []
        for parent in first + locations(from: directory) where seen.insert(parent.normalized).inserted {
            for name in entries(of: parent) {
                let path = parent.appending(name)
                let isPlugin = source(of: path) != nil
                guard isPlugin || isMeantAsPlugin(path) else { continue }
                var listing =
                    isPlugin
                    ? self.listing(of: path, called: name)
                    : PluginListing(name: name, location: path, problems: [nearMiss(path, name: name)])
                listing.shadow = builtIn.contains(name) ? .builtIn : taken[name].map { .plugin($0) }
                // `find` uses the first plugin that exists, even if it is broken.
                if isPlugin, taken[name] == nil { taken[name] = path }
                listings.append(listing)
            }
        }
        return listings
    }

    /// Returns the plugin at the path, or the reason why there is none.
    ///
    /// `name` is the name that was searched for; nil for a path.
    package func listing(of path: PathBytes, called name: String?) -> PluginListing {
        let shown = name ?? String(decoding: path.lastComponent, as: UTF8.self)
        switch plugin(at: path) {
        case .success(let plugin):
            let problems = problems(of: plugin, called: name)
            return PluginListing(name: shown, location: path, plugin: plugin, problems: problems)
        case .failure(let problem): return PluginListing(name: shown, location: path, problems: [problem])
        }
    }

    /// Returns whether something that is not a plugin appears to be meant as one: a script that is not executable, or a
    /// directory with an executable or a description of another name.
    ///
    /// A README next to the plugins does not, nor does a directory of modules.
    private func isMeantAsPlugin(_ path: PathBytes) -> Bool {
        switch KernelFileSystem().stat(following: path).snapshot?.type {
        case .file: return ScriptLine(of: path) != nil
        case .directory:
            return entries(of: path).contains { entry in
                entry == "plugin.yml" || entry == "plugin.json"
                    || ExecutableCheck.problem(with: path.appending(entry)) == nil
            }
        default: return false
        }
    }
}
