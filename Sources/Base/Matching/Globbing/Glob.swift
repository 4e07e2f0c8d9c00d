/// A path pattern over bytes.
///
/// A glob matches *whole* paths: `in/*.jpg` is neither found inside a longer
/// path nor at its end. An absolute pattern matches absolute paths, a relative
/// one relative paths. Nothing is looked up on the disk, and nothing but the
/// extension is ever compared other than byte by byte.
///
/// ## Wildcards
///
/// | Pattern | Matches |
/// | --- | --- |
/// | `*` | any characters of one name, also none |
/// | `?` | one character |
/// | `[abc]`, `[a-z]` | one of the characters |
/// | `[!abc]`, `[^abc]` | one character that is none of them |
/// | `[[:digit:]]` | one of a class: `alnum`, `alpha`, `blank`, `cntrl`, `digit`, `graph`, `lower`, `print`, `punct`, `space`, `upper`, `xdigit`, for ASCII |
/// | `{a,b}` | either; may be nested, empty and hold `/` and wildcards |
/// | `**` | as a whole component: any number of folders, also none |
/// | `/**` at the end | everything below the folder at any depth, not the folder |
/// | `\x` | `x` itself, whatever it is |
///
/// - `/` is matched by `/` alone: no wildcard and no class takes it. An escaped
///   slash is still a slash.
/// - A *character* is a Unicode scalar where the name is UTF-8, and one byte
///   where it is not. `é` as one scalar is one character, as `e` and an accent it
///   is two, and a pattern with the one does not match a name with the other.
/// - In a class, `]` is literal as the first character and `-` as the first or
///   last one; `\` escapes. Bytes that are not UTF-8 may stand in it, and sort
///   after all scalars. Collating symbols (`[.a.]`, `[=a=]`) have no meaning.
/// - `**` within a component (`a**b`, `***`) acts like `*`. Several `**` in a
///   row act like one.
/// - A class is read before the braces around it: in `{[,],x}` the first comma is
///   literal. Braces without a comma (`{x}`, `{}`) are literal, as in the shell,
///   and so are a `}` and a `,` that belong to no `{`. `{1..3}` is an error. What
///   holds of a pattern holds of each alternative as if it was written alone:
///   `{*,a}*/b` is `**/b` or `a*/b`.
///
/// ## Hidden names
///
/// A name with a leading dot is matched only by a component that begins with a
/// literal dot: `.*`, `\.x`, and the first alternative of `{.a,b}`, but not `*`,
/// `*.jpg` (for a file `.jpg`), `?x` or `[.]x`. `**` does not enter such folders,
/// while `.git/**` says so itself. ``Options/matchesHidden`` turns this off.
///
/// ## Case
///
/// Case counts, except in extensions: in the last component, all literals and
/// classes behind its last literal dot take `a` and `A` for one another, for
/// ASCII letters. `*.jpg` matches `a.JPG`, `IMG*.jpg` leaves `img1.jpg`, and of
/// `*.tar.gz` only the `gz` may differ. A dot that begins the component is no
/// such dot, so `.bashrc` leaves `.BASHRC`. Each alternative of a brace has its
/// own last dot. ``Options/isCaseSensitive`` turns this off.
///
/// ## Slashes and dots
///
/// Doubled slashes count as one and `.` components are dropped. A slash at the
/// end is an error, since the type of what matches is not a glob's business, and
/// so is a `..` component. Paths are expected without either, without `.`
/// components and without a slash at the end; a path with an empty component
/// matches nothing.
///
/// ## Bounds
///
/// A pattern, all alternatives of its braces written out, has at most 65,536
/// bytes and 1,024 alternatives. Matching allocates nothing and takes at most
/// time in proportion to the length of the pattern times that of the path.
package struct Glob: Sendable, Hashable, CustomStringConvertible {
    /// What a pattern leaves open.
    package struct Options: Sendable, Hashable {
        /// Whether wildcards match a leading dot of a component.
        package var matchesHidden = false
        /// Whether case counts in extensions too.
        package var isCaseSensitive = false

        package init(matchesHidden: Bool = false, isCaseSensitive: Bool = false) {
            self.matchesHidden = matchesHidden
            self.isCaseSensitive = isCaseSensitive
        }
    }

    /// The pattern as it was written.
    package let pattern: [UInt8]
    /// The options that the pattern was read with.
    package let options: Options
    let program: GlobProgram

    /// Reads a pattern.
    ///
    /// - Throws: The first thing in it that has no meaning.
    package init(_ pattern: some Sequence<UInt8>, options: Options = Options()) throws(GlobError) {
        self.pattern = Array(pattern)
        self.options = options
        program = try GlobProgram(self.pattern, options: options)
    }

    /// Reads a pattern that is given as text.
    ///
    /// - Throws: The first thing in it that has no meaning.
    package init(_ pattern: String, options: Options = Options()) throws(GlobError) {
        try self.init(pattern.utf8, options: options)
    }

    /// The literal folder in front of the first component with a wildcard or
    /// alternatives: what has to be watched.
    ///
    /// Of a pattern without either it is the folder of the last component. It is
    /// absolute for an absolute pattern (`/` for `/*`), and `.` for a relative one
    /// without a literal folder. Escapes are resolved.
    package var root: [UInt8] { program.root }

    /// How many folder levels below ``root`` can hold a match; nil when any can.
    ///
    /// 0 for `/in/*`, 1 for `/in/*/a.txt`, nil for a pattern with `**`, the most
    /// of any alternative.
    package var depth: Int? { program.depth }

    private static let special = Set("*?[]{},\\".utf8)

    /// The pattern that matches exactly these bytes.
    package static func escaped(_ bytes: [UInt8]) -> [UInt8] {
        bytes.flatMap { special.contains($0) ? [UInt8(ascii: "\\"), $0] : [$0] }
    }

    package static func == (left: Glob, right: Glob) -> Bool {
        left.pattern == right.pattern && left.options == right.options
    }

    /// The pattern to show; bytes that are not UTF-8 become U+FFFD.
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
    /// The path is bytes without a slash at the end, absolute if the pattern is,
    /// else relative to the same folder as the pattern.
    package func matches(_ path: [UInt8]) -> Bool { program.matches(path.span) }

    /// Whether the whole path matches.
    package func matches(_ path: ArraySlice<UInt8>) -> Bool { program.matches(path.span) }

    /// Whether the whole path matches.
    package func matches(_ path: Span<UInt8>) -> Bool { program.matches(path) }

    /// Whether the whole path matches; bytes that do not lie side by side are copied.
    package func matches(_ path: some Collection<UInt8>) -> Bool { path.withSpan { program.matches($0) } }

    /// Whether some path strictly below this folder could match, as decides
    /// whether the folder is watched.
    ///
    /// True for ``root``, for the folders above it, and for each folder below that
    /// a match can be in; what exists on the disk plays no part.
    ///
    /// The folder is bytes without a slash at the end (or `/`), absolute if the
    /// pattern is. For a relative pattern `.`, or nothing, is the folder that it is
    /// relative to.
    package func canMatch(below folder: some Collection<UInt8>) -> Bool {
        folder.withSpan { program.canMatch(below: $0) }
    }

    /// Whether some path directly in this folder could match.
    ///
    /// The folder is given as to ``canMatch(below:)``, which is true whenever this is.
    package func canMatch(in folder: some Collection<UInt8>) -> Bool {
        folder.withSpan { program.canMatch(in: $0) }
    }
}
