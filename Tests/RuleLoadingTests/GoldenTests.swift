import FileEvents
import Glibc
import RuleLoading
import Testing
import TestKit

private let isRecordingNow = getenv("RECORD") != nil

extension Golden {
    static var isRecording: Bool { isRecordingNow }
}

struct GoldenTests {
    static let cases = TestFile.names(in: Golden.folder).map { String(decoding: $0, as: UTF8.self) }
        .filter { $0.hasSuffix(".yaml") }.map { String($0.dropLast(5)) }

    @Test func `there are cases`() { #expect(Self.cases.count >= 60) }

    @Test(arguments: cases)
    func `a rules file gives the recorded diagnostics`(name: String) {
        let loaded = makeLoader(in: Golden.folder).load(["\(name).yaml"])
        let text = loaded.diagnostics.isEmpty ? "no problems\n" : DiagnosticText.text(of: loaded.diagnostics)
        #expect(text == Golden.text(name, recording: text))
    }

    @Test(arguments: cases)
    func `carets stand inside of their line`(name: String) {
        let loaded = makeLoader(in: Golden.folder).load(["\(name).yaml"])
        for diagnostic in loaded.diagnostics {
            guard let line = diagnostic.sourceLine else { continue }
            #expect(diagnostic.caret <= line.unicodeScalars.count)
            #expect(line.unicodeScalars.count <= 122)
        }
    }
}

struct SeveralFilesTests {
    @Test func `all errors of several files are told at once`() {
        let loaded = makeLoader(in: Golden.folder).load(["Several", "several-missing.yaml"])
        let text = DiagnosticText.text(of: loaded.diagnostics)
        #expect(loaded.files.count == 3)
        #expect(text == Golden.text("Several/all", recording: text))
    }
}
