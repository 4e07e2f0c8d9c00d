import ActionAPI
import PluginProtocol
import Plugins
import Programs
import Rules
import System

extension PluginConformance {
    /// The plugin's description of itself; discovery has already checked that there is one.
    var description: String {
        let modes = (plugin.description.modes ?? ["run"]).joined(separator: ", ")
        let version = plugin.description.version.isEmpty ? "" : " \(plugin.description.version)"
        let remark = plugin.remarks.first.map { "; \($0)" } ?? ""
        return "\(plugin.description.name)\(version), \(modes)\(remark)"
    }

    func effectsOfDescribe() throws(HandlerProblem) -> ConformanceCheck.Verdict {
        let yaml = plugin.location.appending("plugin.yaml")
        guard Self.content(of: yaml) == nil || plugin.location == plugin.executable else {
            return .skipped("plugin.yaml describes it")
        }
        let stage = try stage("describe")
        let before = record(of: stage)
        var command = command("describe", in: stage)
        command.timeout = .seconds(10)
        let first = launcher.run(command, stop: StopSignal()).output
        let second = launcher.run(command, stop: StopSignal()).output
        if let difference = before.differences(to: record(of: stage)).first(where: { !Self.isCache($0.path) }) {
            return .failed(
                "'\(difference.path)' was \(difference.verb.rawValue)",
                help: "make describe only print; it is called whenever rules are loaded")
        }
        guard first == second else {
            return .failed(
                "it printed two different descriptions",
                help: "make describe print the same each time; the answer is cached until the executable changes")
        }
        return .passed(nil)
    }

    /// Returns the contents of the directories that a call must not change.
    func record(of stage: ConformanceStage) -> TreeRecord {
        TreeRecord([stage.files, stage.home] + (ownFolder.map { [$0] } ?? []), without: [stage.scratch])
    }

    /// Returns whether a library created the path: what Python leaves next to a module, and the files from which ORC,
    /// used by libvips and GStreamer, maps its code.
    static func isCache(_ path: PathBytes) -> Bool {
        path.lastComponent.starts(with: "orcexec.".utf8)
            || path.andParents.contains { $0.lastComponent.elementsEqual("__pycache__".utf8) }
    }
}
