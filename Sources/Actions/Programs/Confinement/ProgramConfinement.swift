import CAlightLinux
import FileEvents
import Glibc
package import Rules
package import System

/// What one process may use and reach, with all paths filled in.
package struct ProgramConfinement: Sendable, Hashable {
    /// What may be done with a path and all that is below it.
    package struct Access: OptionSet, Sendable, Hashable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let read = Access(rawValue: CAL_ACCESS_READ.rawValue)
        package static let execute = Access(rawValue: CAL_ACCESS_EXECUTE.rawValue)
        package static let write = Access(rawValue: CAL_ACCESS_WRITE.rawValue)
    }

    /// A path that can be reached.
    package struct Grant: Sendable, Hashable {
        let place: ProgramPath
        package let access: Access
        /// Without it a path that is missing keeps the program from starting.
        let isIfThere: Bool
        package var path: PathBytes { place.path }

        init(_ place: ProgramPath, _ access: Access, ifThere: Bool = false) {
            self.place = place
            self.access = access
            isIfThere = ifThere
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
            let event = invocation.job.event
            grants.append(Grant(ProgramPath(event.path, beneath: event.root), .read, ifThere: true))
        }
        grants.append(Grant(ProgramPath(scratch), [.read, .write]))
        for path in Self.program(executable) + [folder].compactMap(\.self) {
            grants.append(Grant(ProgramPath(path), [.read, .execute], ifThere: true))
        }
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
                    let place = ProgramPath(
                        path, of: template, in: invocation.folder, for: invocation.job.event)
                    grants.append(Grant(place, access))
                }
            }
        }
        return grants
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
        let code: [ProgramPath] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]
        let facts: [ProgramPath] = [
            "/etc", "/dev/random", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
            "/proc/filesystems", "/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu",
        ]
        let devices: [ProgramPath] = ["/dev/null", "/dev/zero", "/dev/full"]
        var grants = code.map { Grant($0, [.read, .execute], ifThere: true) }
        grants += facts.map { Grant($0, .read, ifThere: true) }
        grants += devices.map { Grant($0, [.read, .write], ifThere: true) }
        // A link to a file below /run, on many systems.
        if hasNetwork { grants.append(Grant("/etc/resolv.conf", .read, ifThere: true)) }
        return grants
    }

    // MARK: - The kernel's part

    /// Makes the Landlock ruleset of the grants: opens each, and lets the program reach what was opened.
    ///
    /// - Returns: Nil when all files can be reached, or the kernel has no Landlock and the sandbox isn't required.
    /// - Throws: Why the program can't be confined.
    func makeRuleset() throws(LaunchFailure) -> OpenFile? {
        guard let grants else { return nil }
        let made = cal_make_ruleset(allowsNetwork ? 1 : 0)
        guard made >= 0 else {
            if !isRequired, cal_landlock_version() < 1 { return nil }
            let reason = String(cString: strerror(-made))
            throw LaunchFailure("cannot confine it to the files of 'sandbox': Landlock: \(reason)", errno: -made)
        }
        let ruleset = OpenFile(made)
        for grant in grants {
            do throws(SystemError) {
                let opened = try grant.place.openEntry()
                let error = withExtendedLifetime((opened, ruleset)) {
                    cal_allow_access(ruleset.descriptor, opened.descriptor, grant.access.rawValue)
                }
                if error != 0 { throw SystemError(errno: error) }
            } catch {
                // Without a descriptor nobody knows whether it is there.
                if grant.isIfThere, error.errno != EMFILE, error.errno != ENFILE { continue }
                throw grant.place.failure(error, to: "add '\(grant.path)' to its sandbox")
            }
        }
        return ruleset
    }
}

extension ProgramPath {
    /// What a template stands for: where it has placeholders, others give names in it.
    ///
    /// - Parameters:
    ///   - path: The template with its placeholders filled in, as an absolute path.
    ///   - template: What it was made of.
    ///   - folder: What relative paths are relative to.
    ///   - event: What placeholders stand for.
    init(_ path: PathBytes, of template: Template, in folder: PathBytes, for event: FileEvent) {
        guard template.literal == nil else {
            self.init(path)
            return
        }
        self.init(path, beneath: template.literalFolder(in: folder) ?? event.root)
    }
}
