import System
import Testing

/// The maker of the archives in the tests of `extract`.
enum ArchiveMaker {
    /// A Python script that creates archives.
    ///
    /// `file`, `folder`, `link`, `hard` and `device` add entries to a tar.
    private static let maker = """
        import io, sys, tarfile, zipfile, stat, os

        def tar(name, *entries, mode="w"):
            with tarfile.open(name, mode) as archive:
                for info, content in entries:
                    archive.addfile(info, io.BytesIO(content) if content is not None else None)

        def entry(name, kind, content=None, link="", mode=0o644):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode, info.mtime = kind, link, mode, 1234567890
            info.size = len(content) if content is not None else 0
            return info, content

        def file(name, content=b"text", mode=0o644): return entry(name, tarfile.REGTYPE, content, mode=mode)
        def folder(name, mode=0o755): return entry(name, tarfile.DIRTYPE, mode=mode)
        def link(name, to): return entry(name, tarfile.SYMTYPE, link=to, mode=0o777)
        def hard(name, to): return entry(name, tarfile.LNKTYPE, link=to)
        def device(name, kind=tarfile.CHRTYPE): return entry(name, kind)

        def zip(name, *entries):
            with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
                for path, content, mode in entries:
                    info = zipfile.ZipInfo(path, (2009, 2, 13, 23, 31, 30))
                    info.create_system, info.external_attr = 3, mode << 16
                    archive.writestr(info, content)


        """

    /// Runs lines of the script, and returns what they print.
    @discardableResult
    static func make(_ lines: String, in directory: PathBytes) -> String {
        let made = call("/usr/bin/python3", ["-c", Self.maker + lines], in: directory)
        #expect(made.status == 0, "\(made.error)")
        return made.output
    }
}
