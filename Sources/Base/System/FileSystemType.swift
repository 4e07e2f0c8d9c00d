import CAlightLinux
import Glibc

/// The types of file systems with changes that inotify does not report.
///
/// On network file systems, and on those that a program or a host machine provides, changes are made elsewhere, and
/// this kernel does not see them. The kernel's own file systems, such as proc, change without any write.
package enum FileSystemType {
    /// The names by the numbers of statfs(2).
    private static let unreliable: [UInt64: String] = [
        // Network and cluster file systems.
        0x6969: "nfs", 0x517B: "smbfs", 0xFF53_4D42: "cifs", 0xFE53_4D42: "smb3", 0x00C3_6400: "ceph",
        0x5346_414F: "afs", 0x6B41_4653: "afs", 0x7375_7245: "coda", 0x564C: "ncpfs", 0x0BD0_0BD0: "lustre",
        0x0116_1970: "gfs2", 0x7461_636F: "ocfs2", 0x4750_4653: "gpfs", 0x2003_0528: "orangefs",
        0x1983_0326: "beegfs", 0xAAD7_AAEA: "panfs", 0xBEEF_DEAD: "snfs",
        // File systems of a program, or of the host of a virtual machine; virtiofs is among the FUSE ones.
        0x6573_5546: "fuse", 0x0102_1997: "9p", 0x786F_4256: "vboxsf", 0xBACB_ACBC: "vmhgfs", 0x7C7C_6673: "prl_fs",
        0x00C0_FFEE: "hostfs",
        // File systems of the kernel.
        0x9FA0: "proc", 0x6265_6572: "sysfs", 0x6265_6570: "configfs", 0x6462_6720: "debugfs",
        0x7472_6163: "tracefs", 0x7363_6673: "securityfs", 0x0027_E0EB: "cgroup", 0x6367_7270: "cgroup2",
        0xCAFE_4A11: "bpf", 0x6573_5543: "fusectl", 0x6165_676C: "pstore", 0xDE5E_81E4: "efivarfs",
    ]

    /// Returns the name of the type of such a file system; nil if the kernel reports all changes.
    static func unreliable(_ descriptor: Int32) -> String? {
        var type: UInt64 = 0
        guard cal_file_system(descriptor, &type) == 0 else { return nil }
        return unreliable[type]
    }

    /// Returns the same for a directory that can be opened.
    package static func unreliable(at directory: PathBytes) -> String? {
        let descriptor = directory.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK) }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return unreliable(descriptor)
    }
}
