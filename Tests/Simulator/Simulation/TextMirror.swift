import FileEvents
import System

/// The text that an action has received for each followed file.
struct TextMirror {
    /// Whether files have birth times; without them, a new file can't be distinguished from an old one.
    let hasBirth: Bool
    var texts: [FileIdentity: [UInt8]] = [:]
    /// The files of which an action has given up a piece of text.
    var lost: Set<FileIdentity> = []

    init(hasBirth: Bool) { self.hasBirth = hasBirth }

    /// Appends a piece of text to the text received so far; the text of a failed job is lost.
    ///
    /// - Returns: The error if the piece does not follow the text received.
    mutating func record(_ event: FileEvent, isDoubtful: Bool, isRepeated: Bool, in world: World) -> String? {
        guard let tail = event.tail else { return nil }
        let file = event.snapshot.identity
        let isDoubtful = isDoubtful || !hasBirth || lost.contains(file)
        let isOther = event.kind == .created || event.kind == .modified && event.isReplaced
        if tail.isReset || isOther && tail.offset == 0 { texts[file] = nil }
        let start = Int(tail.offset)
        let known = isDoubtful ? world.text(of: file) ?? Array(repeating: 0, count: start) : texts[file] ?? []
        texts[file] = known.prefix(start) + tail.bytes
        guard !isDoubtful, start > known.count || start < known.count && !isRepeated else { return nil }
        return "\(world.name(of: event.path)): text from \(start) after \(known.count) bytes"
    }
}
