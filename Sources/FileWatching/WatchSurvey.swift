package import FileEvents
import Glibc

/// What watching a scope would take, found without watching.
package struct WatchSurvey: Sendable {
    /// The folders that would have a watch each.
    package private(set) var folders = 0
    /// Whether these are all; else the count stopped at a bound.
    package private(set) var isComplete = true
    /// The folders at which polling begins, and why.
    package private(set) var polled: [(folder: PathBytes, reason: PollingReason)] = []
    /// The limit of watches that holds here.
    package let limit = InotifyLimit.watches
    /// How many watches the user's programs hold now; nil when that can't be told.
    package let used = WatchSurvey.usedWatches()

    /// Counts the folders below the roots, as a watcher would visit them.
    ///
    /// - Parameters:
    ///   - scope: What would be watched.
    ///   - most: Where the count stops.
    ///   - deadline: When it stops at the latest, as far as the file system lets it.
    package init(_ scope: WatchScope, most: Int = 1_000_000, until deadline: ContinuousClock.Instant) {
        var seen: Set<PathBytes> = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 8)
        defer { buffer.deallocate() }
        let wanted = Dictionary(grouping: scope.roots, by: \.path).mapValues { $0.map(\.backend) }
        let outerFirst = wanted.sorted { $0.key.bytes.count < $1.key.bytes.count }
        for (path, backends) in outerFirst where !seen.contains(path) {
            if backends.contains(.poll) { polled.append((path, .asked)) }
            if !backends.contains(where: { $0 != .poll }) { continue }
            var pending: [(path: PathBytes, device: UInt64?)] = [(path, nil)]
            while let (folder, device) = pending.popLast() {
                if folders >= most || .now >= deadline {
                    isComplete = false
                    return
                }
                if wanted.count > 1, folder != path, wanted[folder] != nil {
                    guard seen.insert(folder).inserted else { continue }
                }
                var error: Int32 = 0
                guard let reader = FolderReader(folder, below: path, error: &error) else { continue }
                defer { reader.close() }
                if reader.device != device, !backends.contains(.inotify), let name = reader.untoldFileSystem {
                    polled.append((folder, .fileSystem(name)))
                    continue
                }
                folders += 1
                let prefix = WatchLoop.prefix(folder)
                while reader.next(
                    into: buffer,
                    {
                        guard reader.isFolder($0) else { return }
                        let path = WatchLoop.path(prefix, $0.name)
                        if scope.reaches(path) { pending.append((path, reader.device)) }
                    }) > 0
                {}
            }
        }
    }

    /// The watches of all processes of this user, as /proc shows them.
    private static func usedWatches() -> Int? {
        guard let processes = opendir("/proc") else { return nil }
        defer { closedir(processes) }
        var count: Int?
        while let entry = readdir(processes) {
            guard let process = name(of: entry), process.first?.isASCIIDigit == true else { continue }
            let folder = PathBytes("/proc").appending(process)
            var status = stat()
            guard folder.withCString({ stat($0, &status) }) == 0, status.st_uid == geteuid(),
                let descriptors = folder.appending("fdinfo").withCString({ opendir($0) })
            else { continue }
            defer { closedir(descriptors) }
            while let entry = readdir(descriptors) {
                guard let descriptor = name(of: entry), descriptor.first?.isASCIIDigit == true else { continue }
                count = (count ?? 0) + watches(in: folder.appending("fdinfo").appending(descriptor))
            }
        }
        return count
    }

    private static func name(of entry: UnsafeMutablePointer<dirent>) -> [UInt8]? {
        guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return nil }
        let start = UnsafeRawPointer(entry) + offset
        return Array(UnsafeRawBufferPointer(start: start, count: strlen(start.assumingMemoryBound(to: CChar.self))))
    }

    /// The lines `inotify wd:…` of a descriptor's facts.
    private static func watches(in path: PathBytes) -> Int {
        guard let file = path.withCString({ fopen($0, "re") }) else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 512)
        var count = 0
        while fgets(&line, Int32(line.count), file) != nil {
            if strncmp(line, "inotify wd:", 11) == 0 { count += 1 }
        }
        return count
    }
}

extension UInt8 {
    fileprivate var isASCIIDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }
}
