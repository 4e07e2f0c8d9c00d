import Settling
import System
import Testing

struct DifferenceTests {
    private func difference(_ before: Snapshot, _ after: Snapshot, _ writing: Difference.Writing = .possible)
        -> Difference
    {
        Difference(before: before, after: after, writing: writing)
    }

    private func attributes(_ before: [(PathBytes, String)]?, _ after: [(PathBytes, String)]?) -> [String] {
        func list(_ pairs: [(PathBytes, String)]?) -> [ExtendedAttribute]? {
            pairs?.map { ExtendedAttribute(name: $0.0, value: Array($0.1.utf8)) }
        }
        return difference(.file(extended: list(before)), .file(extended: list(after))).attributes
    }

    @Test func `equal snapshots have no differences`() {
        #expect(difference(.file(), .file()).isEmpty)
    }

    @Test func `growing, shrinking and rewriting change the content`() {
        #expect(difference(.file(size: 1), .file(size: 2)).content == ["extended"])
        #expect(difference(.file(size: 2), .file(size: 1)).content == ["truncated"])
        #expect(difference(.file(modified: 1), .file(modified: 2)).content == ["overwritten"])
    }

    @Test func `a touch changes an attribute`() {
        let touched = difference(.file(modified: 1), .file(modified: 2), .excluded)
        #expect(touched.content.isEmpty)
        #expect(touched.attributes == ["mtime"])
    }

    @Test func `S02 a new change time alone is a change of the content after a write, or if the file was not watched`()
    {
        for (writing, content): (Difference.Writing, [String]) in [
            (.excluded, []), (.possible, []), (.unwatched, ["overwritten"]), (.certain, ["overwritten"]),
        ] {
            let found = difference(.file(changed: 1), .file(changed: 2), writing)
            #expect(found.content == content)
            #expect(found.attributes.isEmpty)
        }
    }

    @Test func `S02 another attribute explains the change time of a file that was not watched`() {
        #expect(difference(.file(changed: 1), .file(changed: 2, mode: 0o600), .unwatched).content.isEmpty)
        #expect(difference(.file(changed: 1), .file(changed: 2, mode: 0o600), .certain).content == ["overwritten"])
    }

    @Test func `a mode is an attribute, not content`() {
        let changed = difference(.file(mode: 0o644), .file(mode: 0o600))
        #expect(changed.content.isEmpty)
        #expect(changed.attributes == ["mode"])
    }

    @Test func `another file at the same path is a replacement even if size and time are equal`() {
        let replaced = difference(.file(inode: 1), .file(inode: 2))
        #expect(replaced.isReplaced)
        #expect(replaced.content == ["overwritten"])
    }

    @Test func `the times of a directory are not a change`() {
        #expect(difference(.file(modified: 1, type: .directory), .file(modified: 2, type: .directory)).isEmpty)
    }

    @Test func `S02 equal checksums mean equal content, whatever the times are`() {
        let rewritten = difference(.file(modified: 1, digest: [7]), .file(modified: 2, digest: [7]))
        #expect(rewritten.content.isEmpty)
        #expect(rewritten.attributes == ["mtime"])
    }

    @Test func `S02 a replacement with the same bytes is a replacement with the same content`() {
        let replaced = difference(.file(inode: 1, digest: [7]), .file(inode: 2, digest: [7]))
        #expect(replaced.isReplaced)
        #expect(replaced.content.isEmpty)
    }

    @Test func `S02 different checksums mean different content, whatever the times are`() {
        #expect(difference(.file(digest: [7]), .file(digest: [8]), .excluded).content == ["overwritten"])
    }

    @Test func `S02 a single checksum is not compared`() {
        #expect(difference(.file(modified: 1), .file(modified: 2, digest: [7])).content == ["overwritten"])
        #expect(difference(.file(digest: [7]), .file()).isEmpty)
    }

    @Test func `S34 a directory handled as one unit has the content of its entries`() {
        func directory(_ digest: [UInt8]?) -> Snapshot { .file(type: .directory, digest: digest) }
        #expect(difference(directory([1]), directory([2])).content == ["overwritten"])
        #expect(difference(directory([1]), directory([1])).isEmpty)
        #expect(difference(directory(nil), directory([1])).isEmpty)
    }

    @Test func `S06 extended attributes that are added, removed and set are named`() {
        let before: [(PathBytes, String)] = [("user.gone", "1"), ("user.kept", "2"), ("user.set", "3")]
        let after: [(PathBytes, String)] = [("user.kept", "2"), ("user.new", "1"), ("user.set", "4")]
        #expect(attributes(before, after) == ["xattr:user.gone", "xattr:user.new", "xattr:user.set"])
        #expect(attributes(before, before).isEmpty)
    }

    @Test func `S06 extended attributes that were not requested are not a difference`() {
        #expect(attributes(nil, [("user.a", "1")]).isEmpty)
        #expect(attributes([("user.a", "1")], nil).isEmpty)
    }

    @Test func `S57 an extended attribute whose name is not UTF-8 is shown once, with replacement characters`() {
        let before: [(PathBytes, String)] = [
            (PathBytes([0x75, 0x2E, 0xFE]), "1"), (PathBytes([0x75, 0x2E, 0xFF]), "1"),
        ]
        #expect(attributes(before, []) == ["xattr:u.\u{FFFD}"])
    }
}
