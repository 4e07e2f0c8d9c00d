import Glibc
import System
import TestKit

/// The small file system for the journal if the command line names none.
enum Namespace {
    /// The size in mebibytes, sufficient for the journal of a run and the log files beside it.
    ///
    /// A life adds about 120 KiB of history, a quarter of the space reserved for it here.
    /// The disk therefore becomes full only when the driver fills it.
    private static func size(kills: Int) -> Int { 4 + (kills + 1) / 2 }

    /// Executes the same program in its own mount namespace.
    static func enter(_ words: [String], kills: Int) {
        let directory = TestFile.makeTemporaryDirectory("disk")
        let own = Places.products.appending("crash-driver").description
        // The directory is removed outside the namespace, because it is busy inside.
        let arguments =
            ["sh", "-c", #""$@"; s=$?; rmdir "$0"; exit $s"#, directory.description]
            + SmallDisk.words(on: directory, options: "size=\(size(kills: kills))m") + [own] + words
            + ["--mounted", directory.description]
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        execv("/bin/sh", &argv)
        print("cannot start a shell: \(SystemError(errno: errno))")
        exit(2)
    }
}
