import Glibc
import Synchronization
package import System
import TestKit

/// The program's view of the files of the world.
extension World: FileSystem {
    package func open(root: PathBytes) throws(SystemError) -> OpenFile {
        try opened { (state: inout WorldState) throws(SystemError) -> Int in
            try state.directory(root, following: .all)
        }
    }

    package func open(_ path: PathBytes, beneath directory: OpenFile) throws(SystemError) -> OpenFile {
        try opened { (state: inout WorldState) throws(SystemError) -> Int in
            guard let start = state.openDirectories[directory.descriptor] else { throw SystemError(errno: EBADF) }
            return try state.directory(path, from: start, following: .none)
        }
    }

    private func opened(
        _ find: (inout WorldState) throws(SystemError) -> Int
    ) throws(SystemError) -> OpenFile {
        let result = state.withLock { state -> Result<Int32, SystemError> in
            state.inspect()
            do throws(SystemError) {
                let node = try find(&state)
                state.nextDescriptor += 1
                state.openDirectories[state.nextDescriptor] = node
                return .success(state.nextDescriptor)
            } catch {
                return .failure(error)
            }
        }
        return OpenFile(try result.get()) { [weak self] descriptor in
            self?.state.withLock { $0.openDirectories[descriptor] = nil }
        }
    }

    package func stat(_ location: DiskProbe.Location, readingExtended: Bool) -> DiskProbe.StatResult {
        state.withLock { state in
            state.inspect()
            state.looks[location.name, default: 0] += 1
            do throws(SystemError) {
                guard let node = try state.node(location) else { return .absent }
                var snapshot = state.snapshot(node)
                if readingExtended { snapshot.extended = [] }
                return .present(snapshot)
            } catch {
                switch error.errno {
                case ENOENT, ENOTDIR, ENAMETOOLONG: return .absent
                default: return .unreadable(errno: error.errno)
                }
            }
        }
    }

    package func names(in location: DiskProbe.Location) throws(SystemError) -> [PathBytes] {
        let result = state.withLock { state -> Result<[PathBytes], SystemError> in
            state.inspect()
            do throws(SystemError) {
                guard let node = try state.node(location) else { throw SystemError(errno: ENOENT) }
                guard state.nodes[node].type == .directory else { throw SystemError(errno: ENOTDIR) }
                guard state.nodes[node].mode & 0o444 != 0 else { throw SystemError(errno: EACCES) }
                return .success(state.listing(node).map(\.name))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    package func writers(of location: DiskProbe.Location) -> DiskProbe.Holders {
        state.withLock { state in
            state.inspect()
            guard let node = try? state.node(location), state.nodes[node].type == .file else { return .unknown }
            return state.nodes[node].writers > 0 ? .held : .free
        }
    }

    /// No process locks files in the world.
    package func locks(of location: DiskProbe.Location) -> DiskProbe.Holders {
        state.withLock { state in
            guard let node = try? state.node(location), state.nodes[node].type == .file else { return .unknown }
            return .free
        }
    }

    package func isOnOverlay(_ location: DiskProbe.Location) -> Bool { false }

    package func read(_ location: DiskProbe.Location, inode: UInt64, from offset: UInt64, count: Int) -> [UInt8] {
        state.withLock { state in
            guard let node = try? state.node(location), state.nodes[node].type == .file,
                state.nodes[node].number == inode, offset < state.nodes[node].size
            else { return [] }
            return Array(state.text(node).dropFirst(Int(offset)).prefix(count))
        }
    }

    package func resolve(_ path: PathBytes) -> PathBytes? {
        state.withLock { state in
            guard let spot = try? state.walk(path, following: .all), spot.node != nil else { return nil }
            return spot.physical
        }
    }

    package func makeDirectory(_ path: PathBytes) -> Int32 {
        state.withLock { state in
            var made = PathBytes("/")
            for name in path.bytes.split(separator: .slash) {
                made = made.appending(name)
                do throws(SystemError) {
                    let spot = try state.walk(made, following: .all)
                    if let node = spot.node {
                        guard state.nodes[node].type == .directory else { return ENOTDIR }
                        continue
                    }
                } catch {
                    return error.errno
                }
                guard state.apply(.mkdir(made)) else { return EACCES }
            }
            return 0
        }
    }

    package var mountPoints: Set<PathBytes> {
        state.withLock { state in Set(state.volumes.filter { $0.mount != 0 }.map(\.point)) }
    }

    package func isMounted(_ mount: UInt64) -> Bool {
        mount != 0 && state.withLock { state in state.volumes.contains { $0.mount == mount } }
    }
}

extension WorldState {
    /// Returns an existing directory.
    func directory(
        _ path: PathBytes, from start: Int? = nil, following links: Links
    ) throws(SystemError) -> Int {
        guard let node = try walk(path, from: start, following: links).node else { throw SystemError(errno: ENOENT) }
        switch nodes[node].type {
        case .directory: return node
        case .symlink: throw SystemError(errno: ELOOP)
        default: throw SystemError(errno: ENOTDIR)
        }
    }

    /// Returns the inode at a place, without following a final link.
    func node(_ location: DiskProbe.Location) throws(SystemError) -> Int? {
        var start: Int?
        if let directory = location.directory {
            guard let opened = openDirectories[directory.descriptor] else { throw SystemError(errno: EBADF) }
            start = opened
        }
        return try walk(location.name, from: start).node
    }

    /// Returns the entries in the order of a file system with hashed names.
    func listing(_ directory: Int) -> [(name: PathBytes, node: Int)] {
        func hash(_ name: PathBytes) -> UInt64 {
            var generator = SeededGenerator(seed: name.bytes.reduce(5381) { $0 &* 33 &+ UInt64($1) })
            return generator.next()
        }
        return entries(directory).map { (hash($0.name), $0) }.sorted { $0.0 < $1.0 }.map(\.1)
    }
}
