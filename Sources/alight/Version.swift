import CBuildCommit

/// The version, for `--version`.
enum Version {
    static let number = "0.1.0"

    /// With the commit that it was built from, where the build knew it.
    static let text: String = {
        let commit = String(cString: build_commit())
        return commit.isEmpty ? "alight \(number)" : "alight \(number) (commit \(commit))"
    }()
}
