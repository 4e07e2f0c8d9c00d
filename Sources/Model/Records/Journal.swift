package import FileEvents
package import Rules
package import System

/// The journal: the state that the engine has to know after a crash.
///
/// All methods may block on a disk. What cannot be read counts as missing; the error is that of the next commit.
package protocol Journal: LedgerStore {
    /// The stored state of the program, except rules, jobs and the ledger.
    var stored: StoredState { get }

    /// Sets the rules that run from now on.
    ///
    /// Called before everything else, and again when other rules run. Former names of a rule are removed: its ledger
    /// and its jobs are those stored under them.
    ///
    /// - Parameters:
    ///   - rules: The rules.
    ///   - isWatching: Whether their files are watched from now on; otherwise only their jobs run.
    ///   - now: The current time.
    /// - Returns: The stored state of each rule, in the order of the rules.
    func register(_ rules: [RuleRecord], isWatching: Bool, at now: Timestamp) -> [StoredRule]

    /// Returns the name under which the rule with a name was stored until the last ``register(_:isWatching:at:)``.
    func currentName(of rule: String) -> String

    /// Returns the id of a stored rule, running or not; nil if there is none with that name.
    func id(of rule: String) -> RuleID?

    /// Returns the unfinished jobs of a rule, sorted by number: those that were running, and those that wait.
    ///
    /// Their metadata have no mount ids, which are valid only in the run that has stored them.
    func unfinishedJobs(of rule: RuleID, at clocks: ClockPair) -> [OpenJob]

    /// Returns a job in any state; nil if there is none, or if its row cannot be read.
    func job(_ id: JobID, at clocks: ClockPair) -> (state: JobState, job: OpenJob)?

    /// Returns the read positions of a rule's files that had left their paths.
    func positions(of rule: RuleID) -> [FileIdentity: ReadPosition]

    /// Returns the stored due paths of a rule, sorted.
    func duePaths(of rule: RuleID) -> [StoredDuePath]

    /// Returns the number of files in the ledger of any of the rules.
    func knownFiles(of rules: [RuleID]) -> Int

    /// Returns the changes to files by the attempts at a job that can be undone, the last attempt first.
    func changes(of id: JobID) -> [RecordedChanges]

    /// Returns the job that `ready` has refused for the current content of the path; nil if there is none.
    func refusal(rule: String, path: PathBytes, snapshot: Snapshot) -> Refusal?

    /// Returns the file from which an output was made; nil if that is unknown.
    func maker(of output: PathBytes) -> OutputMaker?

    /// Records the file from which outputs were made, at once; after an error it stays unknown.
    func record(_ outputs: [PathBytes], of maker: OutputMaker)

    /// Writes the changes in one transaction.
    ///
    /// - Returns: Nil once they are committed. After an error nothing is written, and the caller passes the changes
    ///   again, with later ones.
    func commit(_ changes: TurnChanges, at clocks: ClockPair) -> StorageError?
}

/// The file from which an output was made, and the rule.
package struct OutputMaker: Sendable, Hashable {
    /// The name of the rule.
    package var rule: String
    package var source: PathBytes

    package init(rule: String, source: PathBytes) { (self.rule, self.source) = (rule, source) }
}

/// A reason why the journal can't be read or written.
///
/// `description` is the message and `help` the remedy.
package struct StorageError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether a later attempt may succeed, as with a full disk; otherwise nothing in the journal is reliable any
    /// more.
    package var mayPass: Bool
    package var description: String
    package var help: String

    package init(_ description: String, help: String, mayPass: Bool = false) {
        (self.description, self.help, self.mayPass) = (description, help, mayPass)
    }
}
