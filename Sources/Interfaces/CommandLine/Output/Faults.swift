import Storage

/// What commands do about a journal that can't be used.
enum Faults {
    /// Does something with a journal.
    ///
    /// - Throws: `Exit` when the journal can't be used; it has been said.
    static func said<Answer>(_ body: () throws(JournalFault) -> Answer) throws -> Answer {
        do throws(JournalFault) {
            return try body()
        } catch {
            Output.error.write("error: \(Display.text(error.description))\n    help: \(error.help)")
            throw Exit(.runtimeError)
        }
    }
}

extension JournalOptions {
    /// Opens the journal that was named, or the usual one, to look at it.
    ///
    /// - Parameter isFollowed: Whether what is written to it from now on has to be seen.
    /// - Returns: The journal.
    /// - Throws: `Exit` when it can't be used; it has been said.
    func open(isFollowed: Bool = false) throws -> JournalReader {
        let file = try file()
        return try Faults.said { () throws(JournalFault) in try JournalReader(file, isTraceless: !isFollowed) }
    }
}
