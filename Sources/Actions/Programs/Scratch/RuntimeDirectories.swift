import ActionAPI
import Glibc
import Rules
package import System

/// The directories that may contain scratch directories and the control socket, the best one first.
///
/// They are examined each time, since `$XDG_RUNTIME_DIR` is removed at logout, and created again at login.
package struct RuntimeDirectories: Sendable {
    /// A directory of Alight's own, which need not exist.
    package struct Candidate: Sendable, Hashable {
        package let path: PathBytes
        /// Why it cannot be used, as a sentence; nil if it can.
        package let problem: String?
    }

    private enum Place {
        /// The directory itself.
        case own(PathBytes)
        /// `alight` in a directory that belongs to the user.
        case session(PathBytes)
        /// A ``UserDirectory`` in a directory that others may write to as well.
        case shared(PathBytes)
    }

    /// The directories that commands with other environment variables find as well.
    private let common: [Place]
    private let places: [Place]
    private let user: UInt32

    /// Lists the first of `service`; `/run/alight` for root, `$XDG_RUNTIME_DIR/alight` and `/run/user/UID/alight` for
    /// others; and `alight-UID` in the directories for temporary files.
    ///
    /// - Parameters:
    ///   - service: The directories that a service manager has created for Alight, as in `$RUNTIME_DIRECTORY`: absolute
    ///     paths, separated by colons.
    ///   - session: `$XDG_RUNTIME_DIR`.
    ///   - temporary: `$TMPDIR`.
    ///   - user: The user that Alight runs as.
    package init(service: PathBytes? = nil, session: PathBytes?, temporary: PathBytes?, user: UInt32) {
        func absolute(_ path: PathBytes?) -> PathBytes? { path.flatMap { $0.bytes.first == .slash ? $0 : nil } }
        let first = service?.bytes.split(separator: UInt8(ascii: ":")).first.map { PathBytes($0) }
        // After su(1), the variable is not set or that of another user, although the directory exists.
        let standard = PathBytes("/run/user/\(user)")
        var sessions = [absolute(session), UserDirectory.isOwn(standard, user: user) ? standard : nil].compactMap(
            \.self)
        if sessions.count == 2, sessions[0].normalized == standard { sessions.removeLast() }
        let shared = ["/tmp", "/var/tmp"].map { Place.shared($0) }
        common = (user == 0 ? [.own("/run/alight")] : sessions.map { .session($0) }) + shared
        let own = absolute(first).map { [Place.own($0)] } ?? []
        let temporary = absolute(temporary).map { [Place.shared($0)] } ?? []
        places = own + common.dropLast(shared.count) + temporary + shared
        self.user = user
    }

    /// The directories for scratch directories.
    package var forScratch: some Sequence<Candidate> { places.lazy.flatMap { candidates(at: $0) } }

    /// The directories for the control socket.
    package var forSocket: some Sequence<Candidate> { common.lazy.flatMap { candidates(at: $0) } }

    /// Returns the result of the first directory for which the body succeeds.
    ///
    /// - Throws: A failure with the reason of each directory.
    func first<Result>(_ body: (PathBytes) throws(ScratchFailure) -> Result) throws(ScratchFailure) -> Result {
        var reasons: [String] = []
        for candidate in forScratch {
            if let problem = candidate.problem {
                reasons.append(problem)
                continue
            }
            do throws(ScratchFailure) {
                return try body(candidate.path)
            } catch {
                reasons.append(error.message)
            }
        }
        throw ScratchFailure(reasons)
    }

    // MARK: - Candidates

    private func candidates(at place: Place) -> [Candidate] {
        switch place {
        case .own(let path): return [candidate(path, problem(withParent: path.parent))]
        case .session(let directory):
            let path = directory.appending("alight")
            guard UserDirectory.isOwn(directory, user: user) else {
                return [Candidate(path: path, problem: Self.refusal(of: directory))]
            }
            return [candidate(path, nil)]
        case .shared(let parent):
            let directory = UserDirectory(in: parent, user: user)
            let passedOver = directory.passedOver.map { [Candidate(path: $0, problem: Self.refusal(of: $0))] } ?? []
            return passedOver + [candidate(directory.path, problem(withParent: parent))]
        }
    }

    private func candidate(_ path: PathBytes, _ problemOfParent: String?) -> Candidate {
        let state = UserDirectory.state(of: path, user)
        let problem =
            (state == .foreign ? Self.refusal(of: path) : problemOfParent)
            ?? Self.obstacle(at: state == .absent ? path.parent : path)
        return Candidate(path: path, problem: problem)
    }

    private static func refusal(of directory: PathBytes) -> String {
        KernelFileSystem().stat(directory) == .absent
            ? "'\(directory)' does not exist" : "'\(directory)' is not a private directory of this user"
    }

    /// Returns why no name can be created in the directory.
    private static func obstacle(at directory: PathBytes) -> String? {
        guard directory.withCString({ access($0, W_OK | X_OK) }) != 0 else { return nil }
        return "cannot write to '\(directory)': \(SystemError(errno: errno))"
    }

    /// Returns why another user could replace what is created in the directory.
    private func problem(withParent directory: PathBytes) -> String? {
        if user == 0, LinkTrust.isMeaningful { return OwnershipCheck.problem(with: directory)?.message }
        // The second call reports that it does not exist.
        guard let found = KernelFileSystem().stat(following: directory).snapshot else { return nil }
        let isForeign = ![0, user, Self.unmapped].contains(found.uid)
        guard isForeign || (found.mode & 0o022 != 0 && mode_t(found.mode) & S_ISVTX == 0) else { return nil }
        return "other users could replace files in '\(directory)'"
    }

    /// The user that owns the files of all users who are not mapped in this user namespace, as root may be.
    private static let unmapped: UInt32 = 65_534
}
