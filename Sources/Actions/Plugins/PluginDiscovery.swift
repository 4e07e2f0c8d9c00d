import ActionAPI
import Foundation
import JSON
import PluginProtocol
import Programs
package import Rules
import Synchronization
package import System

/// Finds plugins by name, and reads their descriptions.
///
/// A plugin is a directory with `plugin.yaml` (or an executable of the directory's name), or an executable that answers
/// the verb `describe`. Descriptions are cached until the file that they come from changes; whether the executable may
/// be run is checked each time.
package final class PluginDiscovery: Sendable {
    /// A function that reads a `plugin.yaml`.
    package typealias Parser = @Sendable (PathBytes) -> Result<PositionedValue, Problem>

    /// The host that runs plugins, also those that have to describe themselves.
    let host: PluginHost
    private let searchDirectories: [PathBytes]
    private let parse: Parser
    /// Whether plugins without a `plugin.yaml` are started to describe themselves.
    private let startsPlugins: Bool
    private let known = Mutex<[PathBytes: Entry]>([:])
    private let unasked = Mutex<Set<PathBytes>>([])

    /// - Parameters:
    ///   - host: The host that runs the plugins.
    ///   - searchDirectories: The directories to search after those next to the rules file.
    ///   - startsPlugins: Whether plugins without a `plugin.yaml` are asked to describe themselves. Those that are not
    ///     asked have the name by which they are found, and are assumed to accept everything.
    ///   - parse: Reads a `plugin.yaml`.
    package init(
        host: PluginHost, searchDirectories: [PathBytes], startsPlugins: Bool = true, parse: @escaping Parser
    ) {
        self.host = host
        self.searchDirectories = searchDirectories
        self.startsPlugins = startsPlugins
        self.parse = parse
    }

    /// The plugins that were found but not described, because they would have to be started for that.
    package var undescribed: [PathBytes] { unasked.withLock { $0.sorted() } }

    /// Returns the plugin that `use:` names; nil when nothing has that name.
    ///
    /// - Parameters:
    ///   - name: The word in `use:`; with a slash it is a path relative to `directory`.
    ///   - directory: The absolute path of the rules file's directory.
    /// - Returns: The plugin, or the reason why it cannot be used.
    package func find(_ name: String, from directory: PathBytes) -> Result<InstalledPlugin, Problem>? {
        if name.contains("/") {
            let path = directory.resolving(name.utf8).normalized
            return source(of: path).map { _ in usable(path, name: nil) }
        }
        guard !name.isEmpty, !name.hasPrefix(".") else { return nil }
        let paths = locations(from: directory).map { $0.appending(name) }
        if let path = paths.first(where: { source(of: $0) != nil }) { return usable(path, name: name) }
        return paths.first(where: exists).map { .failure(nearMiss($0, name: name)) }
    }

    /// Returns the reason why a file or directory of the right name is not a plugin.
    func nearMiss(_ path: PathBytes, name: String) -> Problem {
        if KernelFileSystem().stat(following: path).snapshot?.type == .directory {
            return Problem("'\(path)' has neither a plugin.yaml nor an executable '\(name)'", help: "add one of them")
        }
        return ExecutableCheck.problem(with: path) ?? Problem("'\(path)' is not a plugin")
    }

    /// Returns the plugin at the path if it has everything it needs, and the name that was searched for.
    private func usable(_ path: PathBytes, name: String?) -> Result<InstalledPlugin, Problem> {
        plugin(at: path).flatMap { plugin in
            problems(of: plugin, called: name).first.map { .failure($0) } ?? .success(plugin)
        }
    }

    /// Returns the problems that keep a described plugin from being used.
    ///
    /// `name` is the name that was searched for; nil for a path.
    func problems(of plugin: InstalledPlugin, called name: String?) -> [Problem] {
        var problems: [Problem] = []
        if let name, plugin.description.name != name {
            let own = plugin.description.name
            let message = "the plugin at '\(plugin.location)' has the name '\(own)' in its description"
            let help = "use one name: rename it, or change 'name' in its description"
            problems.append(Problem(message, help: help))
        }
        if let problem = RequiredPrograms.problem(with: plugin) { problems.append(problem) }
        if host.environment.isRoot {
            problems += RequiredPrograms.paths(of: plugin).compactMap { host.ownership.problem(running: $0) }
        }
        return problems
    }

    /// Returns the plugin at a location that `find` has returned, and describes it again if it has changed since.
    package func plugin(at location: PathBytes) -> Result<InstalledPlugin, Problem> {
        Result { () throws(Problem) in try load(location) }.mapError {
            $0.of("plugin '\(PathBytes(location.lastComponent))'")
        }
    }

    /// Returns the names of all plugins that `find` would find.
    package func names(from directory: PathBytes) -> [String] {
        let names = locations(from: directory).flatMap { location in
            entries(of: location).filter { source(of: location.appending($0)) != nil }
        }
        return Set(names).sorted()
    }

    /// Returns the names in a directory without hidden ones, sorted; none for a directory that cannot be listed.
    func entries(of location: PathBytes) -> [String] {
        let entries = location.text.flatMap { try? FileManager.default.contentsOfDirectory(atPath: $0) } ?? []
        return entries.filter { !$0.hasPrefix(".") }.sorted()
    }

    /// Returns the directories that are searched for plugins, in order, for a rules file in the given directory.
    package func locations(from directory: PathBytes) -> [PathBytes] {
        var locations = [directory.appending("plugins")]
        if directory.normalized.lastComponent.elementsEqual("rules".utf8) {
            locations.append(directory.normalized.parent.appending("plugins"))
        }
        return locations + searchDirectories
    }

    /// Discards all descriptions; for a reload, which may follow the repair of what a plugin needs.
    package func forget() { known.withLock { $0 = [:] } }

    // MARK: - Descriptions

    /// Returns the file that describes the plugin at a path: the executable itself, `plugin.yaml`, or the executable of
    /// the directory's name; nil for what is not a plugin.
    func source(of path: PathBytes) -> PathBytes? {
        if ExecutableCheck.problem(with: path) == nil { return path }
        return [path.appending("plugin.yaml"), path.appending(path.lastComponent)].first(where: exists)
    }

    func exists(_ path: PathBytes) -> Bool { path.withCString { access($0, F_OK) } == 0 }

    private struct Entry {
        var stamp: Snapshot
        var result: Result<InstalledPlugin, Problem>
        var time = ContinuousClock.now

        /// Whether the plugin must be described again: a failure may be temporary, such as a timeout on a busy machine.
        var isOld: Bool { if case .failure = result { ContinuousClock.now - time > .seconds(5) } else { false } }
    }

    private func load(_ location: PathBytes) throws(Problem) -> InstalledPlugin {
        guard let source = source(of: location) else {
            throw nearMiss(location, name: String(decoding: location.lastComponent, as: UTF8.self))
        }
        try checkOwner(source, [])
        let plugin = try described(location, by: source)
        if var problem = ExecutableCheck.problem(with: plugin.executable) {
            problem.help = problem.help ?? "put the plugin's program there, or name it with 'run' in plugin.yaml"
            throw problem
        }
        try checkOwner(plugin.executable, plugin.arguments)
        return plugin
    }

    /// Throws when root must not run the executable or a file among its arguments: each word of `run:` belongs to the
    /// plugin.
    private func checkOwner(_ executable: PathBytes, _ arguments: [[UInt8]]) throws(Problem) {
        guard host.environment.isRoot else { return }
        let files = arguments.filter { $0.first == .slash }.map { PathBytes($0) }
        if let problem = host.ownership.problem(running: executable, arguments)
            ?? files.lazy.compactMap({ self.host.ownership.problem(with: $0) }).first
        {
            throw problem
        }
    }

    /// Returns the plugin, which is described again only if its source has changed or an earlier failure is old.
    private func described(_ location: PathBytes, by source: PathBytes) throws(Problem) -> InstalledPlugin {
        guard let stamp = KernelFileSystem().stat(following: source).snapshot else {
            throw Problem("'\(source)' is no longer there")
        }
        if let entry = known.withLock({ $0[source] }), entry.stamp == stamp, !entry.isOld {
            return try entry.result.get()
        }
        let result = Result { () throws(Problem) in try describe(location, by: source) }
        known.withLock { $0[source] = Entry(stamp: stamp, result: result) }
        return try result.get()
    }

    private func describe(_ location: PathBytes, by source: PathBytes) throws(Problem) -> InstalledPlugin {
        let hasFile = source == location.appending("plugin.yaml")
        if !hasFile, !startsPlugins {
            unasked.withLock { _ = $0.insert(source) }
            let name = String(decoding: location.lastComponent, as: UTF8.self)
            var description = PluginDescription(name: name, version: "", parameters: nil)
            description.rawPaths = true
            return InstalledPlugin(description: description, location: location, executable: source)
        }
        let file = try hasFile ? parse(source).get() : PositionedValue(answer(of: source))
        do throws(Problem) {
            let (description, notices) = try DescriptionReader.read(file.value)
            let words = description.run ?? [description.name]
            let command = hasFile ? command(words, in: location) : [source.bytes]
            guard let executable = command.first else {
                throw Problem("'run' is empty", help: "write 'run: ./\(description.name)'", key: "run")
            }
            return InstalledPlugin(
                description: description, location: location, executable: PathBytes(executable),
                arguments: Array(command.dropFirst()), notices: notices)
        } catch {
            throw file.position(of: error.key ?? "").map(error.at) ?? error
        }
    }

    /// Returns the words of `run:` with absolute paths, because plugins work in a scratch directory.
    ///
    /// The first word is an executable in the plugin's directory, or else a program that is searched for. Of the
    /// others, those that start with `./` or `../` are paths.
    private func command(_ words: [String], in directory: PathBytes) -> [[UInt8]] {
        words.enumerated().map { index, word in
            let inside = directory.appending(word).normalized
            let isPath = word.hasPrefix("./") || word.hasPrefix("../")
            if word.hasPrefix("/") || (index > 0 && !isPath) { return Array(word.utf8) }
            if !isPath, !exists(inside), let found = ExecutableCheck.find(word) { return found.bytes }
            return inside.bytes
        }
    }

    /// Returns the executable's answer to the verb `describe`.
    private func answer(of executable: PathBytes) throws(Problem) -> JSONValue {
        let command = Command(
            executable: executable, arguments: [Array("describe".utf8)], environment: host.environment.variables,
            timeout: .seconds(10), grace: .seconds(1))
        let ended = host.launcher.runBlocking(command)
        let help = "put it into a directory with a plugin.yaml, or make it print its description"
        let reason: String
        switch ended.termination {
        case .exited(status: 0):
            do throws(JSONError) {
                return try JSONValue(reading: ended.output)
            } catch {
                reason = "its output for 'describe' \(error.clause)"
            }
        case .timedOut: reason = "it does not answer 'describe' within 10s"
        case .outputTooLarge: reason = "it printed more than 1 MiB for 'describe', and was stopped"
        case .couldNotStart(let why): reason = why
        default: reason = "it can't describe itself: \(ended.lastLine ?? "it failed without a message")"
        }
        throw Problem(reason, help: help)
    }
}
