package import FileEvents
package import Rules
import Settling

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
                    guard template.literal == nil else {
                        grants.append(Grant(path, access))
                        continue
                    }
                    let head = template.literalFolder(in: invocation.folder)
                    let root = invocation.job.event.root
                    let top = head ?? (path.isInside(root) ? root : path.parent)
                    // A name that others give may be that of a link.
                    grants.append(Grant(try withoutLinks(path, below: top), access.union(.noFollow)))
                }
            }
        }
        return grants
    }

    /// The path with the folders on its way resolved, which must not lead out of the one that the rule names.
    ///
    /// What is not there yet is left as it is. The last name is the launcher's matter.
    private static func withoutLinks(_ path: PathBytes, below top: PathBytes) throws(HandlerProblem) -> PathBytes {
        guard path != top, path.isInside(top), let realTop = DiskProbe.resolve(top) else { return path }
        var folder = path.parent
        var rest = [Array(path.lastComponent)]
        while folder != top {
            if let real = DiskProbe.resolve(folder) {
                guard real.isInside(realTop) else { throw Self.leadsOut(path, folder, top) }
                return rest.reversed().reduce(real) { $0.appending($1) }
            }
            // A link to what is not there would be followed once it is.
            if case .present(let there) = DiskProbe.look(at: folder), there.type == .symlink {
                throw Self.leadsOut(path, folder, top)
            }
            rest.append(Array(folder.lastComponent))
            folder = folder.parent
        }
        return rest.reversed().reduce(realTop) { $0.appending($1) }
    }

    private static func leadsOut(_ path: PathBytes, _ link: PathBytes, _ top: PathBytes) -> HandlerProblem {
        HandlerProblem(
            message: "the path '\(path)' of 'sandbox' leads out of '\(top)' by a symbolic link, at or above '\(link)'",
            help: nil)
    }

    /// The executable, and the interpreters that it names by `#!`, as the kernel follows them.
    private static func program(_ executable: PathBytes) -> [PathBytes] {
        var programs = [executable]
        while programs.count < 6, let last = programs.last, let line = ScriptLine(of: last) {
            programs.append(line.interpreter)
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
