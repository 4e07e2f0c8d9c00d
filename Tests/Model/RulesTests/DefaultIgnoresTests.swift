import Globbing
import Rules
import Testing

struct DefaultIgnoresTests {
    @Test func `every entry is a valid glob with a reason`() {
        #expect(DefaultIgnores.globs.globs.count == DefaultIgnores.entries.count)
        #expect(DefaultIgnores.entries.allSatisfy { !$0.reason.isEmpty })
    }

    @Test(arguments: [
        ".notes.txt.swp", "a/.notes.txt.swo", "notes.txt~", "#notes.txt#", ".#notes.txt", "a/~$letter.docx",
        ".~lock.letter.odt#", ".a.txt.1x9.alight-tmp", "film.mkv.part", "setup.exe.crdownload", "a/b/x.tmp", "X.TMP",
        ".git", ".git/index",
        "a/.svn/entries", "CVS/Root", ".DS_Store", "a/._photo.jpg", "Thumbs.db", "System Volume Information/x",
        "$RECYCLE.BIN/x", ".Trash-1000/files/a", "photos/@eaDir/a.jpg", "x.dat.filepart", "film.mkv.!qB", ".nfs0000a1",
        ".syncthing.photo.jpg.tmp",
    ])
    func `names of temporary and system files are ignored`(path: String) {
        #expect(DefaultIgnores.globs.covers(Array(path.utf8)))
    }

    @Test(arguments: [
        "notes.txt", ".bashrc", ".swp.txt", "a.swift", "part", "part.txt", "git/x", ".gitignore", ".github/x.yml",
        "template.docx", "tmp/x.txt", "Downloads/x.iso", "a.bak", "cvs/x", "thumbs/x.jpg", "#1.txt", "~x.txt", "a~b",
        "photo.sync", "desktop.init",
    ])
    func `names that users choose are not ignored`(path: String) {
        #expect(!DefaultIgnores.globs.covers(Array(path.utf8)))
    }
}
