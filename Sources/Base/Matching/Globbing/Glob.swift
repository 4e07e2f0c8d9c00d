/// A path pattern over bytes.
///
/// A glob matches *whole* paths: `in/*.jpg` does not match a part of a longer path. An absolute pattern matches
/// absolute paths, a relative pattern matches relative paths. Matching does not access the disk. All comparisons are
/// byte by byte, except for the extension.
///
/// ## Wildcards
///
/// | Pattern | Matches |
/// | --- | --- |
/// | `*` | any characters of one name, or none |
/// | `?` | one character |
/// | `[abc]`, `[a-z]` | one of the characters |
/// | `[!abc]`, `[^abc]` | one character that is not among them |
/// | `[[:digit:]]` | one of a class: `alnum`, `alpha`, `blank`, `cntrl`, `digit`, `graph`, `lower`, `print`, `punct`, `space`, `upper`, `xdigit`, for ASCII |
/// | `{a,b}` | any of the alternatives; may be nested or empty, and contain `/` and wildcards |
/// | `**` | as a whole component: any number of directories, or none |
/// | `/**` at the end | everything below the directory at any depth, but not the directory |
/// | `\x` | `x` itself, for any character |
///
/// - Only `/` matches `/`: no wildcard and no class matches it. An escaped slash is still a slash.
/// - A *character* is a Unicode scalar where the name is UTF-8, and one byte where it is not. A precomposed `é` is one
///   character, `e` with a combining accent is two, and a pattern with one form does not match a name with the other.
/// - In a class, `]` is literal as the first character and `-` as the first or last one; `\` escapes. A class may
///   contain bytes that are not UTF-8, which sort after all scalars. Collating symbols (`[.a.]`, `[=a=]`) have no
///   meaning.
/// - `**` within a component (`a**b`, `***`) acts like `*`. Several `**` in a row act like one.
/// - A class is read before the braces around it: in `{[,],x}` the first comma is literal. Braces without a comma
///   (`{x}`, `{}`) are literal, as in the shell, and so are a `}` and a `,` without a `{`. `{1..3}` is an error. Every
///   alternative behaves as if it was a pattern of its own: `{*,a}*/b` is `**/b` or `a*/b`.
///
/// ## Hidden names
///
/// A name with a leading dot is matched only by a component that starts with a literal dot: `.*`, `\.x`, and the first
/// alternative of `{.a,b}`, but not `*`, `*.jpg` (for a file `.jpg`), `?x` or `[.]x`. `**` does not enter such
/// directories, but `.git/**` does, since it names one. ``Options/matchesHidden`` turns this off.
///
/// ## Case
///
/// Matching is case-sensitive, except in extensions: in the last component, all literals and classes after its last
/// literal dot ignore the case of ASCII letters. `*.jpg` matches `a.JPG`, `IMG*.jpg` does not match `img1.jpg`, and in
/// `*.tar.gz` only `gz` ignores case. A leading dot of the component does not count, so `.bashrc` does not match
/// `.BASHRC`. Each alternative of a brace has its own last dot. ``Options/isCaseSensitive`` turns this off.
///
/// ## Slashes and dots
///
/// Doubled slashes count as one, and `.` components are dropped. A slash at the end is an error, because a glob does
/// not select file types, and so is a `..` component. Paths must not contain `.` or `..` components, or end with a
/// slash. A path with an empty component matches nothing.
///
/// ## Bounds
///
/// A pattern with all alternatives of its braces expanded has at most 65,536 bytes and 1,024 alternatives. Matching
/// allocates nothing, and its time is at most proportional to the length of the pattern times the length of the path.
package struct Glob: Sendable, Hashable, CustomStringConvertible {
    /// The options of a pattern.
    package struct Options: Sendable, Hashable {
        /// Whether wildcards match a leading dot of a component.
        package var matchesHidden = false
        /// Whether extensions are case-sensitive too.
        package var isCaseSensitive = false

        package init(matchesHidden: Bool = false, isCaseSensitive: Bool = false) {
            (self.matchesHidden, self.isCaseSensitive) = (matchesHidden, isCaseSensitive)
        }
    }

    /// The pattern as it was written.
    package let pattern: [UInt8]
    /// The options of the pattern.
    package let options: Options
    let program: GlobProgram

    /// Creates a glob from a pattern.
    ///
    /// - Throws: The first error in the pattern.
    package init(_ pattern: some Sequence<UInt8>, options: Options = Options()) throws(GlobError) {
        self.pattern = Array(pattern)
        self.options = options
        program = try GlobProgram(self.pattern, options: options)
    }

    /// Creates a glob from a string.
    ///
    /// - Throws: The first error in the pattern.
    package init(_ pattern: String, options: Options = Options()) throws(GlobError) {
        try self.init(pattern.utf8, options: options)
    }

    /// The literal directory before the first component with a wildcard or alternatives: the directory to watch.
    ///
    /// For a pattern without either, it is the directory of the last component. It is absolute for an absolute pattern
    /// (`/` for `/*`), and `.` for a relative pattern without a literal directory. Escapes are resolved.
    package var root: [UInt8] { program.root }

    /// The number of directory levels below ``root`` that can contain a match; nil if there is no limit.
    ///
    /// The depth is 0 for `/in/*`, 1 for `/in/*/a.txt`, nil for a pattern with `**`, and the maximum of all
    /// alternatives.
    package var depth: Int? { program.depth }

    private static let special = Set("*?[]{},\\".utf8)

    /// Returns the pattern that matches exactly these bytes.
    package static func escaped(_ bytes: [UInt8]) -> [UInt8] {
        bytes.flatMap { special.contains($0) ? [UInt8(ascii: "\\"), $0] : [$0] }
    }

    package static func == (left: Glob, right: Glob) -> Bool {
        left.pattern == right.pattern && left.options == right.options
    }

    /// The pattern for display; bytes that are not UTF-8 become U+FFFD.
    package var description: String { String(decoding: pattern, as: UTF8.self) }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(pattern)
        hasher.combine(options)
    }
}

// MARK: - Matching

extension Glob {
    /// Whether the whole path matches.
    ///
    /// The path is bytes without a slash at the end. It is absolute if the pattern is, and otherwise relative to the
    /// same directory as the pattern.
    package func matches(_ path: [UInt8]) -> Bool { program.matches(path.span) }

    /// Whether the whole path matches.
    package func matches(_ path: ArraySlice<UInt8>) -> Bool { program.matches(path.span) }

    /// Whether the whole path matches.
    package func matches(_ path: Span<UInt8>) -> Bool { program.matches(path) }

    /// Whether the whole path matches; noncontiguous bytes are copied.
    package func matches(_ path: some Collection<UInt8>) -> Bool { path.withSpan { program.matches($0) } }

    /// Whether a path strictly below this directory could match, which decides whether the directory is watched.
    ///
    /// True for ``root``, for the directories above it, and for each directory below that can contain a match,
    /// regardless of what exists on the disk.
    ///
    /// The directory is bytes without a slash at the end (or `/`), absolute if the pattern is. For a relative pattern,
    /// `.` or an empty collection is the directory that the pattern is relative to.
    package func canMatch(below directory: some Collection<UInt8>) -> Bool {
        directory.withSpan { program.canMatch(below: $0) }
    }

    /// Whether a path directly in this directory could match.
    ///
    /// The directory has the same form as for ``canMatch(below:)``, which is true whenever this is.
    package func canMatch(in directory: some Collection<UInt8>) -> Bool {
        directory.withSpan { program.canMatch(in: $0) }
    }
}
