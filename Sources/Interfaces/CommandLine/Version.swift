import CBuildCommit

/// The version of the program.
enum Version {
    static let number = "0.1.0"

    /// The commit from which the program was built; nil if unknown.
    static let commit: String? = {
        let commit = String(cString: build_commit())
        return commit.isEmpty ? nil : commit
    }()

    /// The version and, if known, the commit.
    static let text = "alight \(number)" + (commit.map { " (commit \($0))" } ?? "")
}
