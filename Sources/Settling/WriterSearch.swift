import CAlightLinux
import FileEvents
import Glibc
import Synchronization

/// Finds files that are open for writing in `/proc`, where the kernel grants no lease.
///
/// Only processes that this one may look into are seen: those of the same user,
/// or all with CAP_SYS_PTRACE. Mappings without a descriptor are not looked for.
///
/// A search over 1,000 descriptors in 77 processes took 12 ms, without
/// optimisation. Its findings stand for twenty times as long as it took, so
/// however many files are asked about, searching takes no more than a twentieth
/// of the time. Old findings do no harm: they can only delay, since not being
/// found proves nothing.
enum WriterSearch {
    /// What a file is the same by.
    struct File: Hashable {
        var deviceMajor: UInt32
        var deviceMinor: UInt32
        var inode: UInt64

        init(_ status: cal_stat) {
            deviceMajor = status.device_major
            deviceMinor = status.device_minor
            inode = status.inode
        }
    }

    private struct Findings {
        var files: Set<File> = []
        var expiry: ContinuousClock.Instant?
    }

    /// After so many descriptors a search ends with what it has.
    private static let bound = 20_000

    private static let findings = Mutex(Findings())

    /// Whether a process was found that has the file open for writing.
    static func hasFound(_ file: File) -> Bool {
        findings.withLock { findings in
            let start = ContinuousClock.now
            if findings.expiry.map({ start >= $0 }) ?? true {
                findings.files = search()
                let end = ContinuousClock.now
                findings.expiry = end + (end - start) * 20
            }
            return findings.files.contains(file)
        }
    }

    private static func search() -> Set<File> {
        var found: Set<File> = []
        var left = bound
        guard var processes = try? FolderNames("/proc") else { return [] }
        while left > 0, let process = processes.next() {
            guard process.bytes.allSatisfy({ (0x30...0x39).contains($0) }),
                var descriptors = try? FolderNames(process.appending("fd"), in: processes.descriptor)
            else { continue }
            while left > 0, let descriptor = descriptors.next() {
                left -= 1
                var link = cal_stat()
                var file = cal_stat()
                descriptor.withCString { name in
                    // The link's own mode says how the file was opened, see proc_pid_fd(5).
                    guard cal_stat_entry(descriptors.descriptor, name, 0, &link) == 0,
                        link.mode & UInt32(S_IFMT) == UInt32(S_IFLNK), link.mode & UInt32(S_IWUSR) != 0,
                        cal_stat_entry(descriptors.descriptor, name, 1, &file) == 0,
                        file.mode & UInt32(S_IFMT) == UInt32(S_IFREG)
                    else { return }
                    found.insert(File(file))
                }
            }
        }
        return found
    }
}
