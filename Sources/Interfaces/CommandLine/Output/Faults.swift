import Storage

/// The handling of journal errors in commands.
enum Faults {
    /// Runs the body, and prints the journal error that it throws.
    ///
    /// - Throws: `Exit` when the journal cannot be used; the error has been printed.
    static func said<Answer>(_ body: () throws(StorageError) -> Answer) throws -> Answer {
        do throws(StorageError) {
            return try body()
        } catch {
            Output.error.write("error: \(Display.text(error.description))\n    help: \(error.help)")
            throw Exit(.runtimeError)
        }
    }
}

extension JournalOptions {
    /// Opens the named or default journal for reading.
    ///
    /// - Parameter isFollowed: Whether the reader must see later writes.
    /// - Returns: The journal.
    /// - Throws: `Exit` when it cannot be used; the error has been printed.
    func open(isFollowed: Bool = false) throws -> JournalReader {
        let file = try file()
        return try Faults.said { () throws(StorageError) in try JournalReader(file, isTraceless: !isFollowed) }
    }
}
