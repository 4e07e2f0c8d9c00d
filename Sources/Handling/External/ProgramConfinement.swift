package import FileEvents
package import Rules

/// What one process may use and reach, with all paths filled in.
package struct ProgramConfinement: Sendable, Hashable {
    /// What may be done with a path and all that is below it.
    package struct Access: OptionSet, Sendable, Hashable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        // As `alight-launch` has them.
        package static let read = Access(rawValue: 1)
        package static let execute = Access(rawValue: 2)
        package static let write = Access(rawValue: 4)
        /// Without it a path that is missing keeps the program from starting.
        static let ifThere = Access(rawValue: 8)
        /// Of a symbolic link at the end of the path the link itself.
        static let noFollow = Access(rawValue: 16)
    }

    /// A path that can be reached.
    package struct Grant: Sendable, Hashable {
        package var path: PathBytes
        package var access: Access

        init(_ path: PathBytes, _ access: Access) {
            self.path = path
            self.access = access
        }
    }

    package var umask: UInt32 = 0o027
    package var nice: Int?
    package var ioPriority: IOPriority?
    package var limits = ResourceLimits()
    package var user: ProgramUser?
    /// The only paths that can be reached; nil for all.
    package var grants: [Grant]?
    /// Those of them that the rule names, for people.
    package var given: [Grant] = []
    package var allowsNetwork = true
    /// Whether a program that the kernel can't confine must not run.
    package var isRequired = true

    package init() {}
}

extension ProgramConfinement {
    /// What holds for a request.
    ///
    /// - Parameters:
    ///   - rule: What the rule says.
    ///   - invocations: Those of the request, whose files can be read.
    ///   - executable: The program.
    ///   - folder: Of a plugin, what it brings along.
    ///   - scratch: The folder that it works in, and may write to.
    /// - Throws: When a path can't be told from the name of a file.
    init(
        _ rule: Confinement, _ invocations: ArraySlice<Invocation>, executable: PathBytes, folder: PathBytes?,
        scratch: PathBytes
    ) throws(HandlerProblem) {
        umask = rule.umask ?? umask
        nice = rule.nice
        ioPriority = rule.ioPriority
        limits = rule.limits ?? limits
        user = rule.user
        guard let sandbox = rule.sandbox else { return }
        allowsNetwork = sandbox.allowsNetwork
        isRequired = sandbox.isRequired
        guard sandbox.confinesFiles else { return }
        given = try Self.given(sandbox, invocations)
        var grants = given
        for invocation in invocations {
            grants.append(Grant(invocation.job.event.path, [.read, .ifThere, .noFollow]))
        }
        grants.append(Grant(scratch, [.read, .write]))
        grants += Self.program(executable).map { Grant($0, [.read, .execute, .ifThere]) }
        if let folder { grants.append(Grant(folder, [.read, .execute, .ifThere])) }
        grants += Self.system(hasNetwork: sandbox.allowsNetwork)
        var seen: Set<Grant> = []
        self.grants = grants.filter { seen.insert($0).inserted }
    }

    /// What the rule itself asks for, of all events.
    private static func given(
        _ sandbox: Sandbox, _ invocations: ArraySlice<Invocation>
    ) throws(HandlerProblem) -> [Grant] {
        var grants: [Grant] = []
        for invocation in invocations {
            for (templates, access) in [
                (sandbox.read ?? [], [.read, .execute]), (sandbox.write ?? [], [.read, .write]),
            ] as [([Template], Access)] {
                for template in templates {
                    guard let path = template.confinedPath(with: invocation.facts, in: invocation.folder) else {
                        throw HandlerProblem(
                            message: "a path of 'sandbox' has a placeholder that is empty, '.' or '..' for "
                                + "'\(invocation.job.event.path)'",
                            help: nil)
                    }
                    // A name that others give may be that of a link.
                    grants.append(Grant(path, template.literal == nil ? access.union(.noFollow) : access))
                }
            }
        }
        return grants
    }

    /// The executable, and the interpreters that it names by `#!`, as the kernel follows them.
    private static func program(_ executable: PathBytes) -> [PathBytes] {
        var programs = [executable]
        while programs.count < 6, let last = programs.last, let next = ScriptLine.interpreter(of: last) {
            programs.append(next)
        }
        return programs
    }

    /// What almost every program needs, and where there are no secrets of others.
    private static func system(hasNetwork: Bool) -> [Grant] {
        let code: [PathBytes] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]
        let facts: [PathBytes] = [
            "/etc", "/dev/random", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
            "/proc/filesystems", "/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu",
        ]
        let devices: [PathBytes] = ["/dev/null", "/dev/zero", "/dev/full"]
        var grants = code.map { Grant($0, [.read, .execute, .ifThere]) }
        grants += facts.map { Grant($0, [.read, .ifThere]) }
        grants += devices.map { Grant($0, [.read, .write, .ifThere]) }
        // A link to a file below /run, on many systems.
        if hasNetwork { grants.append(Grant("/etc/resolv.conf", [.read, .ifThere])) }
        return grants
    }
}
