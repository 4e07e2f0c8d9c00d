import JSON
import Rules
import System
import Testing

/// Decoding of `action:`.
struct ActionDecodingTests {
    @Test func `actions have a long form, a short one, and a list`() throws {
        let short = try rule("rules: [{ path: /in/*, action: log }]").actions
        let long = try rule("rules: [{ path: /in/*, action: { use: log } }]").actions
        let list = try rule("rules: [{ path: /in/*, action: [log, { shell: 'true' }, { exec: ['true'] }] }]").actions
        #expect(short.map(\.work) == long.map(\.work))
        #expect(list.map(\.name) == ["log", "shell", "exec"])
    }

    @Test func `the defaults of a handler are filled in, and its reference is stored`() throws {
        let rule = try rule("rules: [{ path: /in/*, action: { use: thumbnail, with: { to: x } } }]")
        guard case .use(let reference, .object(let members)) = rule.actions[0].work else {
            Issue.record("not a handler")
            return
        }
        #expect(reference == HandlerReference(name: "thumbnail", location: "/plugins/thumbnail"))
        #expect(members["size"] == .value(.integer(256)))
    }

    @Test func `a program is searched for when the rules load`() throws {
        let rule = try rule("rules: [{ path: /in/*, action: { exec: [sh, -c, '~/x ${size}', ~/x, '~', a~/b] } }]")
        guard case .exec(let arguments) = rule.actions[0].work else {
            Issue.record("not exec")
            return
        }
        let program = String(decoding: arguments[0].literal ?? [], as: UTF8.self)
        #expect(["/usr/local/bin/sh", "/usr/bin/sh", "/bin/sh"].contains(program))
        #expect(arguments[3].literal == Array("/home/ada/x".utf8))
        #expect(arguments[4].literal == Array("/home/ada".utf8))
        #expect(arguments[5].literal == Array("a~/b".utf8))
        #expect(arguments[2].placeholders == [.size])
    }

    @Test func `the home directory is expanded at the start of a parameter`() throws {
        let rule = try rule(
            "rules: [{ path: /in/*, action: { use: copy, with: { to: '~/x/${stem}', not: 'a ~/x', env: '${env:INBOX}${env:EMPTY}${env:TWICE}' } } }]"
        )
        guard case .use(_, .object(let members)) = rule.actions[0].work,
            case .text(let to) = members["to"], case .text(let not) = members["not"],
            case .text(let env) = members["env"]
        else {
            Issue.record("not a handler with texts")
            return
        }
        #expect(to.parts == [.literal(Array("/home/ada/x/".utf8)), .placeholder(.stem)])
        #expect(not.literal == Array("a ~/x".utf8))
        // The value of a variable is not expanded again.
        #expect(env.literal == Array("/srv/in${path}".utf8))
    }

    @Test func `a step can refer to the outputs of earlier steps`() throws {
        let rule = try rule(
            "rules: [{ path: /in/*, action: [log, { use: copy, with: { to: '${steps.0.outputs.0}' } }] }]")
        #expect(rule.actions.count == 2)
    }
}
