package import System

/// A plugin with persistent processes.
package struct PersistentPlugin: Sendable {
    /// The plugin's place.
    package var location: PathBytes
    /// Its components; a change of one replaces its processes.
    package var files: [PathBytes]
    package var parallel: Int
    package var concurrent: Int

    package init(location: PathBytes, files: [PathBytes], parallel: Int, concurrent: Int) {
        self.location = location
        self.files = files
        self.parallel = parallel
        self.concurrent = concurrent
    }
}
