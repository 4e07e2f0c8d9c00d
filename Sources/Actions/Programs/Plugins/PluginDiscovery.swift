import FileEvents
import Foundation
package import PluginProtocol
package import Rules
import Synchronization
package import System

/// Finds plugins by name, and learns what they say of themselves.
///
/// A plugin is a folder with `plugin.yaml` (or an executable of the folder's
/// name), or an executable that answers the verb `describe`. Descriptions are
/// kept until the file that gave them changes; whether the executable may be run is looked at each time.
package final class PluginDiscovery: Sendable {
    /// Reads a `plugin.yaml`.
    package typealias Parser = @Sendable (PathBytes) -> Result<JSONValue, HandlerProblem>

    private let searchFolders: [PathBytes]
    private let launcher: ProcessLauncher
    private let environment: ProgramEnvironment
    private let parse: Parser
    /// Whether plugins without a `plugin.yaml` are started, to describe themselves.
    private let startsPlugins: Bool
    private let known = Mutex<[PathBytes: Entry]>([:])
    private let ownership = OwnershipRecord()
    private let unasked = Mutex<Set<PathBytes>>([])

    /// - Parameters:
    ///   - searchFolders: Where to look after the folders beside the rules file.
    ///   - launcher: Starts plugins that have to describe themselves.
    ///   - environment: What they are told, and whether Alight is root.
    ///   - startsPlugins: Whether those without a `plugin.yaml` are asked to describe themselves. Those that are not
    ///     have the name that they are found by, and are taken to accept everything.
    ///   - parse: Reads a `plugin.yaml`.
    package init(
        searchFolders: [PathBytes], launcher: ProcessLauncher, environment: ProgramEnvironment,
        startsPlugins: Bool = true, parse: @escaping Parser
    ) {
        self.searchFolders = searchFolders
        self.launcher = launcher
        self.environment = environment
        self.startsPlugins = startsPlugins
        self.parse = parse
    }

    /// The plugins that were found and would have to be started to describe themselves, and were not.
    package var undescribed: [PathBytes] { unasked.withLock { $0.sorted() } }

    /// The plugin that `use:` names; nil when there is nothing of that name.
    ///
    /// - Parameters:
    ///   - name: The word in `use:`; with a slash it is a path relative to `folder`.
    ///   - folder: The absolute folder of the rules file.
    /// - Returns: The plugin, or why what is there can't be used.
    package func find(_ name: String, from folder: PathBytes) -> Result<Plugin, HandlerProblem>? {
        if name.contains("/") {
            let path = folder.resolving(name.utf8).normalized
            return kind(of: path).map { _ in usable(path, name: nil) }
        }
        guard !name.isEmpty, !name.hasPrefix(".") else { return nil }
        let paths = places(from: folder).map { $0.appending(name) }
        if let path = paths.first(where: { kind(of: $0) != nil }) { return usable(path, name: name) }
        return paths.first(where: exists).map { .failure(nearMiss($0, name: name)) }
    }

    /// Why something of the right name is no plugin.
    func nearMiss(_ path: PathBytes, name: String) -> HandlerProblem {
        var status = stat()
        if path.withCString({ stat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFDIR {
            return HandlerProblem(
                message: "'\(path)' has neither a plugin.yaml nor an executable '\(name)'", help: "add one of them")
        }
        return ExecutableCheck.problem(with: path) ?? HandlerProblem(message: "'\(path)' is not a plugin", help: nil)
    }

    /// The plugin at that place if it has all it needs, and the name it was looked for by.
    private func usable(_ path: PathBytes, name: String?) -> Result<Plugin, HandlerProblem> {
        plugin(at: path).flatMap { plugin in
            problems(of: plugin, called: name).first.map { .failure($0) } ?? .success(plugin)
        }
    }

    /// What keeps a plugin that could be described from being used; `name` is what it was looked for by, nil for a path.
    func problems(of plugin: Plugin, called name: String?) -> [HandlerProblem] {
        var problems: [HandlerProblem] = []
        if let name, plugin.description.name != name {
            problems.append(
                HandlerProblem(
                    message: "the plugin at '\(plugin.location)' calls itself '\(plugin.description.name)'",
                    help: "give it one name: rename it, or change 'name' in its description"))
        }
        if let problem = RequiredPrograms.problem(with: plugin) { problems.append(problem) }
        if environment.isRoot {
            problems += RequiredPrograms.paths(of: plugin).compactMap { ownership.problem(running: $0) }
        }
        return problems
    }

    /// The plugin at a place that `find` gave, described anew if it has changed since.
    package func plugin(at location: PathBytes) -> Result<Plugin, HandlerProblem> {
        do throws(HandlerProblem) {
            return .success(try load(location))
        } catch {
            return .failure(
                HandlerProblem(
                    message: "plugin '\(PathBytes(location.lastComponent))': \(error.message)", help: error.help))
        }
    }

    /// The names of all plugins that `find` would see.
    package func names(from folder: PathBytes) -> [String] {
        var names: Set<String> = []
        for place in places(from: folder) {
            guard let path = place.text, let entries = try? FileManager.default.contentsOfDirectory(atPath: path) else {
                continue
            }
            for entry in entries where !entry.hasPrefix(".") && kind(of: place.appending(entry)) != nil {
                names.insert(entry)
            }
        }
        return names.sorted()
    }

    /// Where plugins are looked for, in order, for a rules file in that folder.
    package func places(from folder: PathBytes) -> [PathBytes] {
        var places = [folder.appending("plugins")]
        if folder.normalized.lastComponent.elementsEqual("rules".utf8) {
            places.append(folder.normalized.parent.appending("plugins"))
        }
        return places + searchFolders
    }

    /// Forgets all descriptions; for a reload, which may follow the repair of what a plugin needs.
    package func forget() { known.withLock { $0 = [:] } }

    // MARK: - What is there

    enum Kind {
        /// With `plugin.yaml`.
        case described
        /// A folder with an executable of its name.
        case folder
        case executable
    }

    func kind(of path: PathBytes) -> Kind? {
        if ExecutableCheck.problem(with: path) == nil { return .executable }
        if exists(path.appending("plugin.yaml")) { return .described }
        return exists(path.appending(path.lastComponent)) ? .folder : nil
    }

    func exists(_ path: PathBytes) -> Bool { path.withCString { access($0, F_OK) } == 0 }

    // MARK: - Descriptions

    private struct Entry {
        var stamp: FileStamp
        var result: Result<Plugin, HandlerProblem>
        var moment = ContinuousClock.now

        /// Whether it has to be asked again: what failed may pass, as a time-out of a busy machine.
        var isOld: Bool {
            if case .failure = result { ContinuousClock.now - moment > .seconds(5) } else { false }
        }
    }

    private func load(_ location: PathBytes) throws(HandlerProblem) -> Plugin {
        guard let kind = kind(of: location) else {
            throw nearMiss(location, name: String(decoding: location.lastComponent, as: UTF8.self))
        }
        let source: PathBytes
        switch kind {
        case .described: source = location.appending("plugin.yaml")
        case .folder: source = location.appending(location.lastComponent)
        case .executable: source = location
        }
        try checkOwner(source, [])
        let plugin = try described(kind, location, source)
        if var problem = ExecutableCheck.problem(with: plugin.executable) {
            problem.help = problem.help ?? "put the plugin's program there, or name it with 'run' in plugin.yaml"
            throw problem
        }
        try checkOwner(plugin.executable, plugin.arguments)
        return plugin
    }

    /// Refuses what root must not run, with the files among its arguments: each word of `run:` is the plugin's own.
    private func checkOwner(_ executable: PathBytes, _ arguments: [[UInt8]]) throws(HandlerProblem) {
        guard environment.isRoot else { return }
        let files = arguments.filter { $0.first == .slash }.map { PathBytes($0) }
        if let problem = ownership.problem(running: executable, arguments)
            ?? files.lazy.compactMap({ self.ownership.problem(with: $0) }).first
        {
            throw problem
        }
    }

    /// The plugin as it was described when its source last changed.
    private func described(
        _ kind: Kind, _ location: PathBytes, _ source: PathBytes
    ) throws(HandlerProblem) -> Plugin {
        guard let stamp = FileStamp(source) else {
            throw HandlerProblem(message: "'\(source)' is no longer there", help: nil)
        }
        if let entry = known.withLock({ $0[source] }), entry.stamp == stamp, !entry.isOld {
            return try entry.result.get()
        }
        let result: Result<Plugin, HandlerProblem>
        do throws(HandlerProblem) {
            result = .success(try describe(kind, location, source))
        } catch {
            result = .failure(error)
        }
        known.withLock { $0[source] = Entry(stamp: stamp, result: result) }
        return try result.get()
    }

    private func describe(_ kind: Kind, _ location: PathBytes, _ source: PathBytes) throws(HandlerProblem) -> Plugin {
        guard case .described = kind else {
            guard startsPlugins else {
                unasked.withLock { _ = $0.insert(source) }
                let name = String(decoding: location.lastComponent, as: UTF8.self)
                var description = PluginDescription(name: name, version: "", parameters: nil)
                description.rawPaths = true
                return Plugin(description: description, location: location, executable: source)
            }
            let (description, remarks) = try DescriptionReader.read(try answer(of: source))
            return Plugin(
                description: description, location: location, executable: source, arguments: [], remarks: remarks)
        }
        let (description, remarks) = try DescriptionReader.read(try parse(source).get())
        let command = command(description.run ?? [description.name], in: location)
        guard let executable = command.first else {
            throw HandlerProblem(message: "'run' is empty", help: "write 'run: ./\(description.name)'")
        }
        return Plugin(
            description: description, location: location, executable: PathBytes(executable),
            arguments: Array(command.dropFirst()), remarks: remarks)
    }

    /// The words of `run:` with paths made absolute, because plugins work in a scratch folder.
    ///
    /// The first is an executable in the plugin's folder, else a program to be
    /// searched for; of the others those that begin with `./` or `../` are paths.
    private func command(_ words: [String], in folder: PathBytes) -> [[UInt8]] {
        words.enumerated().map { index, word in
            let inside = folder.appending(word).normalized
            if word.hasPrefix("/") { return Array(word.utf8) }
            if word.hasPrefix("./") || word.hasPrefix("../") { return inside.bytes }
            guard index == 0 else { return Array(word.utf8) }
            if !exists(inside), let found = ExecutableCheck.find(word) { return found.bytes }
            return inside.bytes
        }
    }

    /// What the executable says to the verb `describe`.
    private func answer(of executable: PathBytes) throws(HandlerProblem) -> JSONValue {
        let command = Command(
            executable: executable, arguments: [Array("describe".utf8)], environment: environment.variables,
            timeout: .seconds(10), grace: .seconds(1))
        let ended = launcher.run(command, stop: StopSignal())
        let help = "put a plugin.yaml into a folder with it, or let it print its description"
        let reason: String
        switch ended.way {
        case .exited(status: 0):
            do throws(JSONFault) {
                return try JSONValue(reading: ended.output)
            } catch {
                reason = "what it prints for 'describe' \(error.clause)"
            }
        case .timedOut: reason = "it does not answer 'describe' within 10s"
        case .outputTooLarge: reason = "it prints more than 1 MiB for 'describe', and was ended"
        case .couldNotStart(let why): reason = why
        default: reason = "it can't describe itself: \(ended.lastLine ?? "it failed without a word")"
        }
        throw HandlerProblem(message: reason, help: help)
    }
}
