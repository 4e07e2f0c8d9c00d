import CBuildCommit

/// The version, for `--version`.
enum Version {
    static let number = "0.1.0"

    /// The commit that it was built from, where the build knew it.
    static let commit: String? = {
        let commit = String(cString: build_commit())
        return commit.isEmpty ? nil : commit
    }()

    /// With the commit, where it is known.
    static let text = "alight \(number)" + (commit.map { " (commit \($0))" } ?? "")
}
