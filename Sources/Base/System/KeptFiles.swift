import Glibc

/// The files that programs left in their scratch directory when the file of their job was gone: `kept/ID` beside the
/// journal.
///
/// One of them may be the file itself.
package struct KeptFiles: Sendable {
    package let directory: PathBytes

    /// - Parameter journal: The journal with the jobs to which the files belong.
    package init(journal: PathBytes) { directory = journal.parent.appending("kept") }

    /// Returns the directory of a job's files, whether or not it exists.
    package func directory(of job: String) -> PathBytes { directory.appending(job) }

    /// Returns the regular files of a job, in order.
    package func files(of job: String) -> [PathBytes] { Self.regularFiles(in: directory(of: job)) }

    /// Creates the directory for all jobs, which only its owner can read.
    package func makeDirectory() throws(SystemError) {
        guard directory.withCString({ mkdir($0, 0o700) }) == 0 || errno == EEXIST else {
            throw SystemError(errno: errno)
        }
    }

    /// Returns a directory for further files of a job, which does not exist yet.
    package func newDirectory(of job: String) -> PathBytes {
        let first = directory(of: job)
        func isFree(_ path: PathBytes) -> Bool { KernelFileSystem().stat(path) == .absent }
        return isFree(first) ? first : (2...).lazy.map { first.appending("\($0)") }.first(where: isFree) ?? first
    }

    /// Removes the files of jobs that are no longer in the journal.
    package func remove(of jobs: [String]) {
        guard !jobs.isEmpty, directory.withCString({ access($0, F_OK) }) == 0 else { return }
        for job in jobs { _ = DirectoryRemoval.removeOwn(directory(of: job)) }
        // Only if it is empty.
        _ = directory.withCString { rmdir($0) }
    }

    /// Returns the regular files in a directory and below it, in order; links are not followed.
    package static func regularFiles(in directory: PathBytes) -> [PathBytes] {
        var files: [PathBytes] = []
        var pending = [directory]
        while let directory = pending.popLast() {
            for name in (try? KernelFileSystem().names(in: directory)) ?? [] {
                let path = directory.appending(name.bytes)
                switch KernelFileSystem().stat(path).snapshot?.type {
                case .file: files.append(path)
                case .directory: pending.append(path)
                case .symlink, .other, nil: break
                }
            }
        }
        return files.sorted()
    }
}
