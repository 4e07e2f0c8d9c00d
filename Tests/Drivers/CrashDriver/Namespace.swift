import FileEvents
import Glibc
import System
import TestKit

/// The small file system that the journal of a play lies on when the command line names none.
enum Namespace {
    /// How large it is, in mebibytes: the journal of a play fits in, with the logs beside it.
    ///
    /// A life leaves some 120 KiB of history, a quarter of what it is given here.
    /// So the disk is full when the play fills it, and never by itself.
    private static func size(kills: Int) -> Int { 4 + (kills + 1) / 2 }

    /// Becomes the same program in a namespace of its own.
    static func enter(_ words: [String], kills: Int) {
        let folder = TestFile.makeTemporaryFolder("disk")
        let own = Places.products.appending("crash-driver").description
        // The folder is removed outside: inside it is busy.
        let arguments =
            ["sh", "-c", #""$@"; s=$?; rmdir "$0"; exit $s"#, folder.description]
            + SmallDisk.words(on: folder, options: "size=\(size(kills: kills))m") + [own] + words
            + ["--mounted", folder.description]
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        execv("/bin/sh", &argv)
        print("cannot start a shell: \(String(cString: strerror(errno)))")
        exit(2)
    }
}
