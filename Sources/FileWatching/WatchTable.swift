import FileEvents

/// Which folder each watch descriptor stands for.
///
/// The kernel gives one descriptor per folder, so two paths to one folder (a
/// symbolic link as root, a bind mount) share it: each descriptor has a list of
/// paths, nearly always of one.
struct WatchTable {
    private var paths: [WatchDescriptor: [PathBytes]] = [:]
    private var descriptors: [PathBytes: WatchDescriptor] = [:]

    var count: Int { paths.count }

    func paths(of descriptor: WatchDescriptor) -> [PathBytes] { paths[descriptor] ?? [] }

    func descriptor(of path: PathBytes) -> WatchDescriptor? { descriptors[path] }

    /// Notes that the folder at this path has this descriptor now.
    ///
    /// - Returns: The descriptor that the path had before and that no path uses any more, to be removed.
    mutating func set(_ path: PathBytes, to descriptor: WatchDescriptor) -> WatchDescriptor? {
        if descriptors[path] == descriptor { return nil }
        let freed = forget(path)
        descriptors[path] = descriptor
        paths[descriptor, default: []].append(path)
        return freed
    }

    /// Forgets one path; the result is its descriptor when no other path uses it.
    mutating func forget(_ path: PathBytes) -> WatchDescriptor? {
        guard let descriptor = descriptors.removeValue(forKey: path) else { return nil }
        paths[descriptor]?.removeAll { $0 == path }
        guard paths[descriptor]?.isEmpty == true else { return nil }
        paths[descriptor] = nil
        return descriptor
    }

    /// Forgets a descriptor that the kernel has dropped; the result is the paths it stood for.
    mutating func forget(descriptor: WatchDescriptor) -> [PathBytes] {
        let lost = paths.removeValue(forKey: descriptor) ?? []
        for path in lost where descriptors[path] == descriptor { descriptors[path] = nil }
        return lost
    }

    /// Forgets a folder and all below it; the result is the descriptors that no path uses any more.
    mutating func forget(below folder: PathBytes) -> [WatchDescriptor] {
        let inside = descriptors.keys.filter { $0.isInside(folder) }
        return inside.compactMap { forget($0) }
    }
}
