import FileEvents
import Foundation
import PluginProtocol
import Rules

extension PluginConformance {
    /// Looks at how the plugin describes itself; that it does, has been seen when it was found.
    func checkDescription() throws(HandlerProblem) {
        let modes = (plugin.description.modes ?? ["run"]).joined(separator: ", ")
        let version = plugin.description.version.isEmpty ? "" : " \(plugin.description.version)"
        let remark = plugin.remarks.first.map { "; \($0)" } ?? ""
        tell(
            "description", "it describes itself",
            .passed("\(plugin.description.name)\(version), \(modes)\(remark)"))

        let title = "the verb describe has no side effects"
        let yaml = plugin.location.appending("plugin.yaml")
        guard Self.content(of: yaml) == nil || plugin.location == plugin.executable else {
            tell("describe-effects", title, .skipped("plugin.yaml describes it"))
            return
        }
        let stage = try stage("describe")
        let watched = [stage.home, stage.files] + (ownFolder.map { [$0] } ?? [])
        let before = TreeRecord(watched, without: [])
        var command = command(
            "describe", in: stage, environment: stage.environment(surroundings, request: nil, event: nil))
        command.timeout = .seconds(10)
        let first = launcher.run(command, stop: StopSignal()).output
        let second = launcher.run(command, stop: StopSignal()).output
        let differences = before.differences(to: TreeRecord(watched, without: [])).filter { !Self.isCache($0.path) }
        if let difference = differences.first {
            tell(
                "describe-effects", title,
                .failed(
                    "'\(difference.path)' was \(difference.verb.rawValue)",
                    help: "let describe print and do nothing else; it is called whenever rules load"))
        } else if first != second {
            tell(
                "describe-effects", title,
                .failed(
                    "it said two different things",
                    help: "let describe say the same each time; the answer is kept until the executable changes"))
        } else {
            tell("describe-effects", title, .passed(nil))
        }
    }

    /// Whether the path is of a library's making: what Python leaves beside a module, and what ORC, below libvips
    /// and GStreamer, maps its code from.
    static func isCache(_ path: PathBytes) -> Bool {
        path.lastComponent.starts(with: "orcexec.".utf8)
            || path.andParents.contains { $0.lastComponent.elementsEqual("__pycache__".utf8) }
    }
}
