package import FileEvents
package import System

extension PartialFile {
    /// Returns the first existing companion of a regular file; nil if there is none.
    ///
    /// Blocks for one stat(2) per entry of the table that applies.
    package static func companion(of location: DiskProbe.Location, size: UInt64, in fileSystem: any FileSystem)
        -> PathBytes?
    {
        let name = location.name.lastComponent
        for entry in companions where size == 0 || !entry.isForEmptyFilesOnly {
            let companion = location.beside(entry.prefix + name + entry.suffix)
            if case .present = fileSystem.stat(companion) { return companion.name }
        }
        return nil
    }
}

extension DiskProbe.Location {
    /// Returns the location of another name in the same directory.
    fileprivate func beside(_ name: [UInt8]) -> Self {
        directory.map { Self($0, PathBytes(name)) } ?? Self(self.name.parent.appending(name))
    }
}
