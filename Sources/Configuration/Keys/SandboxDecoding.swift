import Glibc
import Rules
import System

// The files that programs can access, and whether this machine can enforce it.
extension ProgramDecoder {
    /// Reports a sandbox that restricts nothing, and one that this machine can't enforce.
    func checkSandbox(_ sandbox: Sandbox, _ entry: YAMLNode.Entry) {
        if !sandbox.confinesFiles, sandbox.allowsNetwork {
            problems.warning(
                "'sandbox' restricts nothing", at: mark(entry),
                help: "add 'read' or 'write' with paths, or 'network: no'")
        }
        let confines = sandbox.confinesFiles
        func report(_ message: String, help: String) {
            if sandbox.isRequired {
                problems.error(message, at: mark(entry), help: "\(help), or add 'required: no' to run without it")
            } else {
                problems.warning("\(message); programs run without it", at: mark(entry), help: help)
            }
        }
        if confines, machine.landlock < 1 {
            let state =
                switch -machine.landlock {
                case ENOSYS: "Landlock ABI 0: the kernel was built without it"
                case EOPNOTSUPP: "Landlock ABI 0: it is disabled"
                default: "Landlock ABI 0: \(SystemError(errno: -machine.landlock))"
                }
            report(
                "this kernel can't restrict programs to the files of 'sandbox' (\(state))",
                help: "boot Linux 5.13 or later with 'landlock' in its parameter 'lsm='")
        } else if confines, machine.landlock < 3 {
            problems.warning(
                "with the Landlock ABI \(machine.landlock) of this kernel a program can still truncate files outside "
                    + "of its 'sandbox'", at: mark(entry), help: "boot Linux 6.2 or later, which has ABI 3")
        }
        if !sandbox.allowsNetwork, !machine.canShutOffNetwork {
            report(
                "this kernel can't block network access for programs: it has no seccomp filters",
                help: "boot a kernel that was built with CONFIG_SECCOMP_FILTER, on x86-64, arm64 or riscv64")
        }
    }

    /// Parses paths: absolute, or relative to the directory of the rules file; placeholders are expanded at each
    /// start.
    func paths(_ entry: YAMLNode.Entry) -> [Template]? {
        list(entry, of: "a path in \(quoted(entry.name))", example: "/srv/out", allowsEmpty: true) { text, node in
            guard !text.isEmpty else {
                return reject(
                    "a path in \(quoted(entry.name)) is empty", at: mark(node), help: "write a file or a directory")
            }
            let isGlob = text.replacing("${", with: "").utf8.contains { "*?[{".utf8.contains($0) }
            if isGlob {
                problems.warning(
                    "\(quoted(text)) is used literally: \(quoted(entry.name)) expects paths, not globs", at: mark(node),
                    help: "write a directory to include everything in it")
            }
            return template(text, node, step: 0)
        }
    }
}
