package import ActionAPI
import CAlightLinux
import FileEvents
import Glibc
package import Rules
package import System

/// The resources and files that one process may use, with all paths filled in.
package struct ProgramConfinement: Sendable, Hashable {
    /// The operations that are allowed on a path and everything below it.
    package struct Access: OptionSet, Sendable, Hashable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let read = Access(rawValue: CAL_ACCESS_READ.rawValue)
        package static let execute = Access(rawValue: CAL_ACCESS_EXECUTE.rawValue)
        package static let write = Access(rawValue: CAL_ACCESS_WRITE.rawValue)
    }

    /// A path that the program can access.
    package struct Grant: Sendable, Hashable {
        let location: ProgramPath
        package let access: Access
        /// Whether a missing path is skipped; otherwise it keeps the program from starting.
        var isOptional = false
        package var path: PathBytes { location.path }
    }

    package var umask: UInt32 = 0o027
    package var nice: Int?
    package var ioPriority: IOPriority?
    package var limits = ResourceLimits()
    package var user: ProgramUser?
    /// The only paths that the program can access; nil for all paths.
    package var grants: [Grant]?
    /// The grants that the rule names, for display.
    package var given: [Grant] = []
    package var allowsNetwork = true
    /// Whether the program must not run if the kernel cannot confine it.
    package var isRequired = true

    package init() {}
}

extension ProgramConfinement {
    /// Creates the confinement for a request.
    ///
    /// - Parameters:
    ///   - rule: The confinement that the rule specifies.
    ///   - invocations: The invocations of the request, whose files can be read.
    ///   - executable: The program.
    ///   - directory: The directory of a plugin, if it has one.
    ///   - scratch: The directory that it works in, and may write to.
    /// - Throws: The problem when a path cannot be derived from the name of a file.
    package init(
        _ rule: Confinement, _ invocations: ArraySlice<Invocation>, executable: PathBytes, directory: PathBytes?,
        scratch: PathBytes
    ) throws(Problem) {
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
            let location = ProgramPath(event.path, beneath: event.root)
            grants.append(Grant(location: location, access: .read, isOptional: true))
        }
        grants.append(Grant(location: ProgramPath(scratch), access: [.read, .write]))
        for path in Self.program(executable) + [directory].compactMap(\.self) {
            grants.append(Grant(location: ProgramPath(path), access: [.read, .execute], isOptional: true))
        }
        grants += Self.system(hasNetwork: sandbox.allowsNetwork)
        var seen: Set<Grant> = []
        self.grants = grants.filter { seen.insert($0).inserted }
    }

    /// Returns the grants that the rule names, for all events.
    private static func given(
        _ sandbox: Sandbox, _ invocations: ArraySlice<Invocation>
    ) throws(Problem) -> [Grant] {
        var grants: [Grant] = []
        for invocation in invocations {
            let lists: [([Template]?, Access)] = [
                (sandbox.read, [.read, .execute]), (sandbox.write, [.read, .write]),
            ]
            for (templates, access) in lists {
                for template in templates ?? [] {
                    guard let path = template.confinedPath(with: invocation.placeholders, in: invocation.baseDirectory)
                    else {
                        throw Problem(
                            "a path of 'sandbox' has a placeholder that is empty, '.' or '..' for "
                                + "'\(invocation.job.event.path)'")
                    }
                    let location = ProgramPath(
                        path, of: template, in: invocation.baseDirectory, for: invocation.job.event)
                    grants.append(Grant(location: location, access: access))
                }
            }
        }
        return grants
    }

    /// Returns the executable and the interpreters that it names by `#!`, as the kernel follows them.
    private static func program(_ executable: PathBytes) -> [PathBytes] {
        var programs = [executable]
        while programs.count < 6, let last = programs.last, let line = ScriptLine(of: last) {
            programs.append(line.interpreter)
        }
        return programs
    }

    /// Returns the grants that almost every program needs, for paths without secrets of other users.
    private static func system(hasNetwork: Bool) -> [Grant] {
        let lists: KeyValuePairs<Access, [ProgramPath]> = [
            [.read, .execute]: ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"],
            .read: [
                "/etc", "/dev/random", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
                "/proc/filesystems", "/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu",
            ],
            [.read, .write]: ["/dev/null", "/dev/zero", "/dev/full"],
            // A link to a file below /run on many systems.
            .read: hasNetwork ? ["/etc/resolv.conf"] : [],
        ]
        return lists.flatMap { access, paths in
            paths.map { Grant(location: $0, access: access, isOptional: true) }
        }
    }

    // MARK: - Landlock

    /// Creates the Landlock ruleset of the grants: opens each path, and allows access to what was opened.
    ///
    /// - Returns: The ruleset; nil when the program can access all files, or the kernel has no Landlock and the sandbox
    ///   is not required.
    /// - Throws: The reason why the program cannot be confined.
    func makeRuleset() throws(LaunchFailure) -> OpenFile? {
        guard let grants else { return nil }
        let made = cal_make_ruleset(allowsNetwork ? 1 : 0)
        guard made >= 0 else {
            if !isRequired, cal_landlock_version() < 1 { return nil }
            let reason = SystemError(errno: -made).description
            throw LaunchFailure(
                reason: "cannot confine it to the files of 'sandbox': Landlock: \(reason)", errno: -made)
        }
        let ruleset = OpenFile(made)
        for grant in grants {
            do throws(SystemError) {
                let opened = try grant.location.openEntry()
                let error = withExtendedLifetime((opened, ruleset)) {
                    cal_allow_access(ruleset.descriptor, opened.descriptor, grant.access.rawValue)
                }
                if error != 0 { throw SystemError(errno: error) }
            } catch {
                // Without a free descriptor it is unknown whether the path exists.
                if grant.isOptional, error.errno != EMFILE, error.errno != ENFILE { continue }
                throw grant.location.failure(error, to: "add '\(grant.path)' to its sandbox")
            }
        }
        return ruleset
    }
}

/// The support of the running kernel for the confinement of programs.
package enum SandboxSupport {
    /// The ABI version of Landlock; a negative errno when there is none.
    package static var landlock: Int32 { cal_landlock_version() }

    /// Whether the sandbox can refuse sockets.
    package static var canShutOffNetwork: Bool { cal_can_filter_calls() != 0 }
}
