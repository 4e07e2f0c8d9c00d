import Configuration
import Glibc
import Testing

private let isRecordingNow = getenv("RECORD") != nil

extension Golden {
    static var isRecording: Bool { isRecordingNow }
}

struct SeveralFilesTests {
    @Test func `all errors of several files are reported at once`() {
        let loaded = makeLoader(in: Golden.directory).load(["Several", "several-missing.yaml"])
        let text = DiagnosticText.text(of: loaded.diagnostics)
        #expect(loaded.files.count == 3)
        #expect(text == Golden.text("Several/all", recording: text))
    }
}
