import Globbing
import Testing

/// Tables of patterns and paths, continued: brackets, braces, escapes, bytes and case.
struct GlobPatternTests {
    typealias Case = GlobMatchingTests.Case

    static func takes(_ pattern: String, _ paths: String..., options: Glob.Options = Glob.Options()) -> [Case] {
        paths.map { Case(pattern: Array(pattern.utf8), path: Array($0.utf8), isMatch: true, options: options) }
    }

    static func leaves(_ pattern: String, _ paths: String..., options: Glob.Options = Glob.Options()) -> [Case] {
        paths.map { Case(pattern: Array(pattern.utf8), path: Array($0.utf8), isMatch: false, options: options) }
    }

    static func takes(_ pattern: [UInt8], _ paths: [UInt8]...) -> [Case] {
        paths.map { Case(pattern: pattern, path: $0, isMatch: true, options: Glob.Options()) }
    }

    static func leaves(_ pattern: [UInt8], _ paths: [UInt8]...) -> [Case] {
        paths.map { Case(pattern: pattern, path: $0, isMatch: false, options: Glob.Options()) }
    }

    static let classes: [[Case]] = [
        takes("[abc]", "a", "b", "c"),
        leaves("[abc]", "d", "A", "ab", ""),
        takes("[a-c]x", "ax", "bx", "cx"),
        leaves("[a-c]x", "dx", "-x", "x"),
        takes("[!a]", "b", "ü", "-"),
        leaves("[!a]", "a", "bb"),
        takes("[^a]", "b", "^"),
        leaves("[^a]", "a"),
        takes("[!a-c0-9]", "d", "!"),
        leaves("[!a-c0-9]", "b", "5"),
        takes("[a^!]", "a", "^", "!"),
        takes("[]]", "]"),
        takes("[]a]", "]", "a"),
        takes("[!]]", "a"),
        leaves("[!]]", "]"),
        takes("[-a]", "-", "a"),
        takes("[a-]", "-", "a"),
        takes("[!-]", "a"),
        leaves("[!-]", "-"),
        takes("[a-c-e]", "b", "-", "e"),
        leaves("[a-c-e]", "d"),
        takes("[--0]", "-", "0"),
        takes("x[--0]x", "x.x", "x-x"),
        leaves("x[--0]x", "x/x"),
        leaves("x[!a]x", "x/x"),
        takes(#"[\]]"#, "]"),
        takes(#"[\\]"#, #"\"#),
        takes(#"[a\-c]"#, "a", "-", "c"),
        leaves(#"[a\-c]"#, "b"),
        takes("[[]", "["),
        takes("[{]", "{"),
        takes("[*?]", "*", "?"),
        leaves("[*?]", "a"),
        takes("[a-zäöü]", "ä", "k"),
        takes("[α-ω]", "α", "κ", "ω"),
        leaves("[α-ω]", "a", "Ω"),
        takes("[☃𝄞]", "☃", "𝄞"),
        takes("[[:alpha:]]", "a", "Z"),
        leaves("[[:alpha:]]", "1", "ä"),
        takes("[[:digit:]_]", "7", "_"),
        leaves("[[:digit:]_]", "a"),
        takes("[![:space:]]", "a"),
        leaves("[![:space:]]", " ", "\t"),
        takes("[[:upper:]][[:lower:]][[:alnum:]]", "Ab1"),
        leaves("[[:upper:]][[:lower:]][[:alnum:]]", "ab1", "AB1", "Ab-"),
        takes("x[[:punct:]]", "x.", "x~", "x!"),
        leaves("x[[:punct:]]", "xa", "x "),
        takes("[[:xdigit:]]", "f", "F", "0"),
        leaves("[[:xdigit:]]", "g"),
        takes("[[:blank:]]", " ", "\t"),
        takes("[[:cntrl:]]", "\u{1}", "\u{7F}"),
        takes("[[:graph:]]", "~"),
        leaves("[[:graph:]]", " "),
        takes("[[:print:]]", " "),
        leaves("[[:print:]]", "\n"),
        takes("[[:alpha:]-z]", "-", "z", "b"),
        takes("[[:]", "[", ":"),
        takes("IMG_[0-9][0-9][0-9].jpg", "IMG_001.jpg"),
    ]

    @Test(arguments: classes.flatMap { $0 })
    func `a class matches one of its characters`(_ example: Case) throws { try GlobMatchingTests.check(example) }

    static let braces: [[Case]] = [
        takes("{a,b}", "a", "b"),
        leaves("{a,b}", "c", "ab", "{a,b}", ""),
        takes("x.{jpg,jpeg,png}", "x.jpg", "x.jpeg", "x.png"),
        leaves("x.{jpg,jpeg,png}", "x.", "x.gif"),
        takes("a{,.bak}", "a", "a.bak"),
        leaves("a{,.bak}", "a.", "a.bakk"),
        takes("{a,b{c,d}}e", "ae", "bce", "bde"),
        leaves("{a,b{c,d}}e", "be", "ce", "ace"),
        takes("{a,{b,{c,}}}x", "ax", "bx", "cx", "x"),
        takes("{a,b}{c,d}", "ac", "ad", "bc", "bd"),
        leaves("{a,b}{c,d}", "ab", "cd"),
        takes("{a/b,c}/d", "a/b/d", "c/d"),
        leaves("{a/b,c}/d", "a/d", "b/d"),
        takes("{**/,}x", "x", "a/x", "a/b/x"),
        takes("{a/,}b/c", "a/b/c", "b/c"),
        takes("in/{**/,}*.txt", "in/a.txt", "in/b/a.txt"),
        takes("{*.txt,b?}", "a.txt", "b1"),
        takes("a/{,b}/c", "a/c", "a/b/c"),
        takes("{,x/}a", "a", "x/a"),
        takes("in/{.,b}", "in", "in/b"),
        leaves("in/{.,b}", "in/.", "b"),
        takes("{/a,/b}/c", "/a/c", "/b/c"),
        takes("{*,a}*/b", "x/y/b", "b", "ax/b"),
        takes("{x}", "{x}"),
        leaves("{x}", "x"),
        takes("{}", "{}"),
        takes("a{}b", "a{}b"),
        takes("{*}", "{abc}"),
        takes("{a,{b}}", "a", "{b}"),
        takes("{{a,b}}", "{a}", "{b}"),
        takes(#"{a\,b,c}"#, "a,b", "c"),
        takes(#"\{a,b}"#, "{a,b}"),
        takes(#"{a\},b}"#, "a}", "b"),
        takes("{[,],x}", ",", "x"),
        takes("{[}],x}", "}", "x"),
        takes("a,b", "a,b"),
        takes("a}", "a}"),
        takes("{a,b}}", "a}", "b}"),
        takes("{1...3}", "{1...3}"),
        takes("{ab..c}", "{ab..c}"),
        takes(#"{1\..3}"#, "{1..3}"),
        takes("{1..3,x}", "1..3", "x"),
        takes("{a,b}/{c,d}/*", "a/d/x", "b/c/x"),
    ]

    @Test(arguments: braces.flatMap { $0 })
    func `braces are alternatives`(_ example: Case) throws { try GlobMatchingTests.check(example) }

    static let escapes: [[Case]] = [
        takes(#"\*"#, "*"),
        leaves(#"\*"#, "a", #"\*"#),
        takes(#"\?\[\]"#, "?[]"),
        takes(#"\\"#, #"\"#),
        takes(#"\a"#, "a"),
        takes(#"\ü"#, "ü"),
        takes(#"a\/b"#, "a/b"),
        takes(#"\**"#, "*", "*a"),
        leaves(#"\**"#, "a", "a/b"),
        takes(#"\**/b"#, "*x/b"),
        leaves(#"\**/b"#, "b", "a/b"),
        takes(#"in/\[draft\] *"#, "in/[draft] x"),
        takes("[[]draft] *", "[draft] x"),
    ]

    @Test(arguments: escapes.flatMap { $0 })
    func `a backslash escapes the next character`(_ example: Case) throws { try GlobMatchingTests.check(example) }

    static let star = UInt8(ascii: "*")
    static let one = UInt8(ascii: "?")
    static let a = UInt8(ascii: "a")
    static let bytes: [[Case]] = [
        takes([star], [0xFF], [0x61, 0xE4, 0x62], [0xC3], [0xC3, 0xA9]),
        takes([one], [0xFF], [0xC3], [0xA9], [0xC3, 0xA9], [0xF0, 0x9D, 0x84, 0x9E]),
        leaves([one], [0xFF, 0xFF], [0xC3, 0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80]),
        takes([one, one], [0xC0, 0x80], [0xC3, 0x61], [0xA9, 0xC3]),
        takes([one, one, one], [0xED, 0xA0, 0x80], [0xE2, 0x98, 0xC3]),
        takes([0xE4], [0xE4]),
        leaves([0xE4], [0xC3, 0xA4]),
        takes([star, 0xA9], [0xA9], [0x61, 0xA9]),
        leaves([star, 0xA9], [0xC3, 0xA9]),
        leaves([0xC3, star], [0xC3, 0xA9]),
        takes([0xC3, star], [0xC3], [0xC3, 0x61], [0xC3, 0xC3, 0xA9]),
        leaves([0xC3, one], [0xC3, 0xA9], [0xC3, 0xA9, 0x61]),
        takes([star, 0xC3, star, 0xA9], [0xC3, 0x61, 0xA9], [0xC3, 0xC3, 0xA9, 0xA9]),
        leaves([star, 0xC3, star, 0xA9], [0xC3, 0xC3, 0xA9]),
        takes(Array("[".utf8) + [0xE4] + Array("]".utf8), [0xE4]),
        leaves(Array("[".utf8) + [0xE4] + Array("]".utf8), [0xC3, 0xA4]),
        takes(Array("[".utf8) + [0x80] + Array("-".utf8) + [0xFF] + Array("]".utf8), [0x80], [0xE4], [0xFF]),
        leaves(Array("[".utf8) + [0x80] + Array("-".utf8) + [0xFF] + Array("]".utf8), [0x61], [0xC3, 0xA4]),
        takes(Array("[!a]".utf8), [0xFF]),
        takes(Array("caf*.txt".utf8), Array("caf".utf8) + [0xE9] + Array(".txt".utf8)),
        takes(Array("in/**/*.txt".utf8), Array("in/".utf8) + [0xFF] + Array("/a.txt".utf8)),
    ]

    @Test(arguments: bytes.flatMap { $0 })
    func `names are bytes`(_ example: Case) throws { try GlobMatchingTests.check(example) }

    @Test func `composed and decomposed accents differ`() throws {
        #expect(try Glob("caf\u{E9}").matches(Array("caf\u{E9}".utf8)))
        #expect(try !Glob("caf\u{E9}").matches(Array("cafe\u{301}".utf8)))
        #expect(try !Glob("cafe\u{301}").matches(Array("caf\u{E9}".utf8)))
    }

    static let exact = Glob.Options(isCaseSensitive: true)
    static let cases: [[Case]] = [
        takes("*.jpg", "a.jpg", "a.JPG", "a.JpG", "A.jpg"),
        takes("*.JPG", "a.jpg", "a.JPG"),
        leaves("IMG*.jpg", "img1.jpg", "Img1.jpg"),
        takes("IMG*.jpg", "IMG1.JPG"),
        takes("*.tar.gz", "a.tar.GZ"),
        leaves("*.tar.gz", "a.TAR.gz", "a.TAR.GZ"),
        leaves("README", "readme"),
        leaves("README.md", "readme.md"),
        takes("README.md", "README.MD"),
        leaves(".bashrc", ".BASHRC"),
        takes(".bash.rc", ".bash.RC"),
        leaves("a.b/c", "a.B/c"),
        leaves("a.b/*", "a.B/c"),
        takes("*.{jpg,png}", "a.PNG", "a.Jpg"),
        takes("*{.jpg,.png}", "a.PNG"),
        takes("*.{jpg,tar.gz}", "a.JPG", "a.tar.GZ"),
        leaves("*.{jpg,tar.gz}", "a.TAR.gz"),
        takes("*.[jp]*", "a.JPG", "a.png"),
        takes("*.[[:upper:]]", "a.x", "a.X"),
        takes("*.[!a]", "a.b"),
        leaves("*.[!a]", "a.A", "a.a"),
        takes("*.mp[34]", "a.MP3"),
        takes("*.j?g", "a.JPG"),
        takes("*.jpg*", "a.JPG~"),
        leaves("[.]jpg", "xjpg"),
        leaves("a[.]jpg", "a.JPG"),
        takes(#"*\.jpg"#, "a.JPG"),
        leaves("*.é", "a.É"),
        leaves("*.jpg", "a.jpe", "a.jpg2", "ajpg"),
        leaves("*.@", "a.`"),
        takes("*.jpg", "a.jpg", options: exact),
        leaves("*.jpg", "a.JPG", "a.Jpg", options: exact),
        leaves("*.[[:upper:]]", "a.x", options: exact),
    ]

    @Test(arguments: cases.flatMap { $0 })
    func `case matters except in the extension`(_ example: Case) throws { try GlobMatchingTests.check(example) }
}
