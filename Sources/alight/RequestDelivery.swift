import Glibc
import Engine
import Journaling
import Rules
import Settling

/// What became of requests.
enum RequestDelivery {
    /// They are done, by the running Alight or here.
    case done
    /// An Alight runs and has not taken them yet.
    case waiting
    /// No Alight runs, and they can't be done here: the next one takes them.
    case kept

    /// How long a running Alight is waited for.
    private static let patience = Duration.seconds(5)

    /// Leaves requests in the journal, and has them taken: by the Alight that has the journal, else here.
    ///
    /// - Parameters:
    ///   - requests: What is asked for, in its order.
    ///   - reader: The journal.
    ///   - rules: Those that are told nothing of what is undone here.
    /// - Returns: What became of them.
    /// - Throws: When the journal can't be read or written.
    static func deliver(
        _ requests: [JournalRequest], _ reader: JournalReader, rules: () -> Ruleset = { Ruleset([]) }
    ) throws(JournalFault) -> RequestDelivery {
        let last = try reader.request(requests)
        if try takeUp(reader, rules) { return .done }
        let deadline = ContinuousClock.now + patience
        // One that was opened without a trace need not see what became of them.
        let reader = try JournalReader(reader.path, isFollowing: true)
        while try reader.openRequests(upTo: last) > 0 {
            guard reader.isInUse else { return .kept }
            if ContinuousClock.now > deadline { return .waiting }
            usleep(10_000)
        }
        return .done
    }

    /// Does what is asked for jobs, in the place of an Alight; false when one has the journal.
    private static func takeUp(_ reader: JournalReader, _ rules: () -> Ruleset) throws(JournalFault) -> Bool {
        guard !reader.isInUse else { return false }
        let rules = rules()
        let journal: DiskJournal
        do throws(JournalError) {
            journal = try OpenJournal.file(at: reader.path, isBrief: true)
        } catch {
            switch error {
            // Whoever may write all of it does what was asked for.
            case .held, .noAccess, .busy: return false
            default: throw JournalFault(error)
            }
        }
        // Files are for an Alight that runs: their requests are put back before the old ones go.
        let files = journal.takeRequests(at: .now)
        if !files.isEmpty { try reader.request(files.map { .apply($0) }) }
        rules.takeBack(journal.takeUndos(), journal)
        if let fault = journal.close(at: DiskProbe.now()) { throw fault }
        return true
    }

    /// What a person has to know of it.
    var note: String? {
        switch self {
        case .done: nil
        case .waiting: "the running Alight has not taken this up yet; it is in the journal, and will be"
        case .kept: "Alight is not running: this is done at its next start"
        }
    }
}
