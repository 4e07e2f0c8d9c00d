import FileEvents
import System

// The text of followed files: how far each was read, whatever its name, and the unfinished line at its end.
extension ViewReconciler {
    /// Whether text of a followed file was read and its action is not finished.
    func hasUnfinishedText(_ path: PathBytes) -> Bool { view.tail != nil && frozen.count(of: path) > 0 }

    /// Reads the text added to a followed file, and records how far it was read.
    ///
    /// - Returns: False if the path waits now: the only text is an unfinished line, or a line comes first whose file
    ///   was removed, replaced or truncated, or text that was read of the file under another name.
    func addText(_ event: inout FileEvent, _ tail: View.Tail) -> Bool {
        let path = event.path
        if endLine(path, event.snapshot) {
            due.wait(path, for: .path(path))
            return false
        }
        let others = formerNames(of: event.snapshot.identity, path)
        if let other = others.first(where: hasUnfinishedText) {
            due.wait(path, for: .path(other))
            return false
        }
        guard let location = try? shared.files.paths.location(of: path) else { return true }
        let handled = row(path).handled
        let own = handled?.identity == event.snapshot.identity ? handled : nil
        let carried = position(of: event.snapshot.identity, at: others, after: own)
        let read = carried ?? own?.delivered ?? 0
        let isShorter = carried == nil && event.isReplaced || event.snapshot.size < read
        let offset = isShorter ? 0 : read
        var text = TailReader.read(
            location, in: shared.host.fileSystem, event.snapshot, from: offset, limit: tail.maximumBytes,
            // Text at the start of a file does not continue any other.
            isReset: offset == 0 && (handled != nil || carried != nil))
        if let line = unfinishedLines[path]?.text, text.offset == line.offset, text.bytes.count < line.bytes.count {
            // The file was truncated or replaced after the judgement.
            resettle(path)
            return false
        }
        endCarrying(event.snapshot.identity, to: path)
        let known = unfinishedLines.removeValue(forKey: path)
        event.tail = text
        // The end of a line in a file with a new name was written before.
        if let wait = tail.lineWait, carried == nil {
            let line = text.removeUnfinishedLine(limit: tail.maximumBytes)
            let now = shared.host.clock.now()
            let deadline = known.flatMap { $0.text.offset == line.offset ? $0.deadline : nil } ?? now + wait
            if !line.bytes.isEmpty, deadline > now || !text.bytes.isEmpty {
                var rest = event
                if !text.bytes.isEmpty {
                    (rest.kind, rest.changed, rest.isReplaced) = (.modified, ["extended"], false)
                    rest.before = event.snapshot
                }
                unfinishedLines[path] = UnfinishedLine(rest, line, until: deadline)
                event.tail = text
            }
            if text.bytes.isEmpty, deadline > now, !line.bytes.isEmpty {
                due.wait(path, for: .gate(Reconciler.Gate("line", path)), until: deadline)
                return false
            }
        }
        event.snapshot.delivered = event.tail.map { $0.offset + UInt64($0.bytes.count) }
        return true
    }

    /// Freezes the text of an unfinished line if its file was removed, replaced or truncated.
    ///
    /// - Returns: Whether it was.
    @discardableResult func endLine(_ path: PathBytes, _ now: Snapshot?) -> Bool {
        guard let event = unfinishedLines[path]?.event else { return false }
        if let now, now.identity == event.snapshot.identity, now.size >= event.snapshot.delivered ?? 0 { return false }
        unfinishedLines[path] = nil
        due.announce(path, nil)
        set(path, LedgerRow(event.snapshot))
        frozen.add(event.paths)
        shared.add(.stored(view: index, event, isUncertain: false))
        return true
    }

    /// Returns the other paths at which the rule has read a file that has left them since.
    private func formerNames(of file: FileIdentity, _ path: PathBytes) -> [PathBytes] {
        guard file.birth != 0 else { return [] }
        return shared.ledger.paths(of: view.id, handling: file).filter { $0 != path && present($0)?.identity != file }
    }

    func readPosition(_ path: PathBytes) -> ReadPosition? { row(path).handled.flatMap(ReadPosition.init) }

    /// Returns how much of a file was read under another path, which it may have left and returned to; nil if it was
    /// last read at the path with the given row.
    private func position(of file: FileIdentity, at others: [PathBytes], after own: Snapshot?) -> UInt64? {
        guard let last = (others.map(readPosition) + [carried[file]]).compactMap(\.self).max() else { return nil }
        if let own = own.flatMap(ReadPosition.init), own >= last { return nil }
        return last.delivered
    }

    /// Forgets what was read of a file under other paths, once it is in the row of a path.
    private func endCarrying(_ file: FileIdentity, to path: PathBytes) {
        if carried[file] != nil { setCarried(file, nil) }
        guard file.birth != 0 else { return }
        for (other, line) in unfinishedLines
        where other != path && line.event.snapshot.identity == file && present(other)?.identity != file {
            unfinishedLines[other] = nil
        }
    }

    /// Preserves how much was read of a file whose row passes to another file.
    func carryOver(_ old: Snapshot?, _ new: Snapshot?) {
        guard let old, old.identity != new?.identity, let position = ReadPosition(old) else { return }
        // It may have left several paths; the last position read counts.
        if let known = carried[old.identity], known >= position { return }
        setCarried(old.identity, position)
        // Most files that leave their paths are deleted.
        guard carried.count > Self.mostCarried, let oldest = carried.min(by: { $0.value < $1.value }) else { return }
        setCarried(oldest.key, nil)
    }

    /// The maximum number of read positions between two names; the oldest one is dropped for another.
    private static let mostCarried = 1_000

    func setCarried(_ file: FileIdentity, _ position: ReadPosition?) {
        carried[file] = position
        shared.carriedChanges[view.id, default: [:]][file] = .some(position)
    }

    /// Preserves the text of a refused file of which none was received; text added to another file is skipped.
    func keepText(_ path: PathBytes, of seen: Snapshot, _ before: Snapshot?) {
        let isOther = before?.identity != seen.identity
        var received = before?.delivered ?? 0
        if isOther {
            let others = formerNames(of: seen.identity, path)
            received = position(of: seen.identity, at: others, after: nil) ?? 0
            endCarrying(seen.identity, to: path)
        }
        guard isOther || received == 0 else { return }
        var row = row(path)
        row.handled?.delivered = received
        set(path, row)
    }
}
