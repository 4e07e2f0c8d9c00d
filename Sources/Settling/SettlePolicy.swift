/// What has to hold before a path counts as finished.
package struct SettlePolicy: Sendable, Hashable {
    /// What to do while a process can still write to the file.
    package enum Writers: String, Sendable, Hashable, CaseIterable {
        case wait, ignore
    }

    /// How long nothing may happen to the path; zero acts at once.
    package var quiet: Duration
    package var writers: Writers

    package init(quiet: Duration = .seconds(2), writers: Writers = .wait) {
        self.quiet = quiet
        self.writers = writers
    }
}
