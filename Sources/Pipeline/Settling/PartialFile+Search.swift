package import FileEvents
package import System

extension PartialFile {
    /// Returns the first existing companion of a regular file; nil if there is none.
    ///
    /// Blocks for one stat(2) per entry of the table that applies.
    package static func companion(of location: DiskProbe.Location, size: UInt64, in fileSystem: any FileSystem)
        -> PathBytes?
    {
        for entry in companions where size == 0 || !entry.isForEmptyFilesOnly {
            let name = entry.prefix + location.name.lastComponent + entry.suffix
            let companion =
                location.directory.map { DiskProbe.Location($0, PathBytes(name)) }
                ?? DiskProbe.Location(location.name.parent.appending(name))
            if case .present = fileSystem.stat(companion) { return companion.name }
        }
        return nil
    }
}
