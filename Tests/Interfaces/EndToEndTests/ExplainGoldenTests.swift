import Foundation
import Glibc
import System
import Testing
import TestKit

/// S58: the output of `alight explain` in recorded situations.
///
/// Each situation is a rules file whose comments prepare it: `# sh: LINE` runs a line of shell in the directory, and
/// `# explain: ARGUMENTS` runs the command. In the rules, `CLOSED` represents hours that do not include the current
/// time.
struct ExplainGoldenTests {
    private static let directory = PathBytes(#filePath).parent.appending("Golden/Explain")

    static let cases = TestFile.names(in: directory).map { String(decoding: $0, as: UTF8.self) }
        .filter { $0.hasSuffix(".yaml") }.map { String($0.dropLast(5)) }
        .filter { !$0.hasPrefix("landlock-") || hasLandlock }

    /// Whether the kernel supports Landlock.
    ///
    /// Rules that need more than it supports lead to warnings.
    private static let hasLandlock = withTempTree { tree in
        let script = "import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(444, None, 0, 1) < 1)"
        return RunningProgram(
            "/usr/bin/python3", ["-Sc", script], in: tree.root, environment: [:], output: tree.path("output")
        ).wait() == 0
    }

    @Test func `S58 there are situations`() { #expect(Self.cases.count >= 20) }

    @Test(arguments: cases)
    func `S58 a situation is explained as recorded`(_ name: String) throws {
        try withTempTree { tree in
            let source = try #require(TestFile.read(Self.directory.appending("\(name).yaml")))
            let rules = String(decoding: source, as: UTF8.self).replacing("CLOSED", with: Instance.closedHours)
            TestFile.write(tree.path("rules.yaml"), rules)
            var text = ""
            for line in rules.split(separator: "\n") {
                if line.hasPrefix("# sh: ") {
                    let program = Self.shell(String(line.dropFirst(6)), tree)
                    #expect(program.wait() == 0, "\(line): \(program.error)")
                } else if line.hasPrefix("# explain: ") {
                    let program = Self.shell("\"$ALIGHT\" explain --rules rules.yaml \(line.dropFirst(11))", tree)
                    let status = program.wait()
                    text += "$ alight explain \(line.dropFirst(11))\n\(program.output)\(program.error)"
                    text += "exit \(status.map(String.init) ?? "-")\n"
                }
            }
            text = Self.plain(text, root: tree.root)
            let golden = Self.directory.appending("\(name).txt")
            if getenv("RECORD") != nil { TestFile.write(golden, text) }
            #expect(text == TestFile.text(golden))
        }
    }

    private static func shell(_ line: String, _ tree: borrowing TemporaryTree) -> RunningProgram {
        let environment = ["ALIGHT": Places.alight.description, "TZ": "UTC", "XDG_RUNTIME_DIR": tree.root.description]
        return RunningProgram(
            "/bin/sh", ["-c", "umask 022; \(line)"], in: tree.root, environment: environment, output: tree.path("out"))
    }

    /// Returns the text without the parts that differ in each run.
    private static func plain(_ text: String, root: PathBytes) -> String {
        var text = text.replacing("\(root)", with: "~")
        text.replace(#/"id":"[0-9:]+"/#, with: "\"id\":\"FILE\"")
        text.replace(#/[0-9A-HJKMNP-TV-Z]{26}/#, with: "JOB")
        text.replace(#/\d{4}-\d\d-\d\dT[0-9:.]+Z/#, with: "MOMENT")
        text.replace(#/(\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?/#, with: "TIME")
        text.replace("\"~/.run/", with: "\"SCRATCH/")
        text.replace(#/"([ug]id)":\d+/#) { "\"\($0.output.1)\":ID" }
        text.replace(#/"btime":"MOMENT",/#, with: "")
        return text
    }
}
