import ArgumentParser
import Configuration
import JSON
import Plugins

/// `alight schema`: prints the JSON Schema of rules files, or of the configuration.
struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema", abstract: "Print the JSON Schema of rules files, or of the configuration, for editors.",
        discussion: """
            Save it beside your rules and name it in their first line. An editor with the YAML language server then \
            completes keys and underlines errors:

              alight schema > rules/alight.schema.json
              # yaml-language-server: $schema=alight.schema.json


            """ + ExitStatus.table(of: [.done, .runtimeError, .usage]))

    @Flag(help: "Print the schema of the configuration instead.")
    var config = false

    func run() throws {
        let program = try CommandContext()
        let schema =
            config ? ConfigurationSchema.document : RuleSchema.document(handlers: program.registry.builtInHandlers)
        Output.standard.write(schema.lines())
    }
}
