import FileEvents
import Foundation
import Handling
import Testing

/// The folders of attempts that were cut off, which are removed by the ids that a journal has.
struct ScratchFolderTests {
    let folder: TemporaryFolder
    let scratch: ScratchFolders

    init() throws {
        folder = try TemporaryFolder()
        scratch = ScratchFolders(base: try folder.folder("run/alight", mode: 0o700))
    }

    @Test func `what an attempt has left is removed with its folder`() throws {
        let id = "01JD8Z3T1WQ2V7N0C5M4K9R6XB"
        try folder.write("run/alight/keep", "x")
        try folder.folder("run/alight/\(id)/deep")
        try folder.write("run/alight/\(id)/deep/file", "x")
        scratch.discard(for: id)
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(scratch.base)") == ["keep"])
    }

    @Test(
        arguments: ["", ".", "..", "../..", "../../x", "keep", "a/../../keep", String(repeating: ".", count: 26)])
    func `an id that is none removes nothing`(id: String) throws {
        for name in ["x", "run/x", "run/alight/x"] { try folder.folder(name) }
        for name in ["keep", "run/keep", "run/alight/keep", "x/file", "run/x/file"] { try folder.write(name, "x") }
        let before = try FileManager.default.subpathsOfDirectory(atPath: "\(folder.path)").sorted()
        scratch.discard(for: id)
        #expect(try FileManager.default.subpathsOfDirectory(atPath: "\(folder.path)").sorted() == before)
    }
}
