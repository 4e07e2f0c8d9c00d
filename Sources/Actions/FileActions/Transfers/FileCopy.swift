import ActionAPI
import CAlightLinux
import Glibc
import PluginProtocol
import Rules
import System

/// The copy of an open file's content to a staged file, which can then be given a name.
struct FileCopy {
    let source: SourceFile
    /// The source, opened for reading.
    let content: OpenFile
    let options: CopyOptions
    /// Whether the copy is flushed here, and not by the caller or not at all.
    let isFlushed: Bool
    let limit: WorkLimit

    /// Copies the file, flushes the copy and verifies it; nothing is left of the copy if that fails.
    ///
    /// - Returns: The copy and its metadata.
    /// - Throws: Also an outcome, for example if the source changes during the copy.
    func run(to location: FileLocation) throws(FileError) -> (StagedFile, Snapshot) {
        let staged = try StagedFile(in: location.directory, for: location.name, mode: options.firstMode)
        try transfer(to: staged)
        guard try source.metadata.isUnchanged(content.metadata()) else { throw .changed }
        try options.copyAttributes(of: content, source.metadata, on: staged.descriptor)
        let made = try staged.metadata()
        guard made.size == source.metadata.size else { throw .changed }
        if isFlushed { try staged.flush() }
        if options.verifies { try verify(staged) }
        return (staged, made)
    }

    /// Reads both files again, the copy from the disk as far as the kernel permits.
    private func verify(_ staged: StagedFile) throws(FileError) {
        if !isFlushed { try staged.flush() }
        posix_fadvise(staged.descriptor, 0, 0, POSIX_FADV_DONTNEED)
        let copy = OpenFile(dup(staged.descriptor))
        guard try !SameContent.holds(content, copy, within: limit) else { return }
        guard try source.metadata.isUnchanged(content.metadata()) else { throw .changed }
        throw FileError(Outcome(.retry, "the copy of '\(source.path)' differs from it when read again", code: "verify"))
    }

    // MARK: - Content

    /// Clones the blocks, or copies the data and preserves the holes of all but small files.
    private func transfer(to staged: StagedFile) throws(FileError) {
        try limit.check("copying")
        let size = Int64(clamping: source.metadata.size)
        var buffer: [UInt8] = []
        // copy_file_range(2) also clones the blocks if that is possible.
        if size > 0, size <= Self.smallSize { return try transfer(0..<size, to: staged, &buffer) }
        if cal_clone(content.descriptor, staged.descriptor) == 0 { return }
        var offset: Int64 = 0
        while offset < size {
            var start = cal_seek_data(content.descriptor, offset)
            // After the last data, or on a file system that does not report holes.
            if start == -Int64(ENXIO) { break }
            if start < 0 { start = offset }
            var end = cal_seek_hole(content.descriptor, start)
            if end < 0 || end > size { end = size }
            try transfer(start..<max(start, end), to: staged, &buffer)
            offset = max(end, start + 1)
        }
        guard size > 0 else {
            // Some files (of procfs) report that they are empty, but are not.
            try transfer(0..<Int64.max, to: staged, &buffer)
            return
        }
        guard ftruncate(staged.descriptor, off_t(size)) == 0 else { throw writeError(errno, staged) }
    }

    /// Copies a range in the kernel, or else through a buffer; a file that is too short is detected later.
    private func transfer(_ range: Range<Int64>, to staged: StagedFile, _ buffer: inout [UInt8]) throws(FileError) {
        var offset = range.lowerBound
        while buffer.isEmpty, offset < range.upperBound {
            try limit.check("copying")
            let count = Int(min(range.upperBound - offset, Self.step))
            let copied = cal_copy_range_at(content.descriptor, staged.descriptor, offset, count)
            if copied > 0 {
                write(back: offset, Int(copied), of: staged)
                offset += copied
                continue
            }
            switch Int32(-copied) {
            case EINTR: continue
            // copy_file_range(2) cannot read some files, or copy between some file systems, where read(2) can.
            case 0, EXDEV, EINVAL, ENOSYS, EOPNOTSUPP, EBADF:
                buffer = [UInt8](repeating: 0, count: bufferSize)
            case let error: throw writeError(error, staged)
            }
        }
        var flushed = offset
        while offset < range.upperBound {
            try limit.check("copying")
            let wanted = Int(min(Int64(buffer.count), range.upperBound - offset))
            let count = buffer.withUnsafeMutableBytes {
                FileIO.read(content.descriptor, into: $0[..<wanted], at: offset)
            }
            if count == 0 { return }
            guard count > 0 else { throw FileError(errno, "cannot read '\(source.path)'") }
            let error = buffer.withUnsafeBytes {
                FileIO.write(UnsafeRawBufferPointer(rebasing: $0[..<count]), to: staged.descriptor, at: offset)
            }
            guard error == 0 else { throw writeError(error, staged) }
            offset += Int64(count)
            if offset - flushed >= Self.step {
                write(back: flushed, Int(offset - flushed), of: staged)
                flushed = offset
            }
        }
    }

    /// Starts writing copied data to the disk, since the flush at the end waits for it.
    ///
    /// For a file of a single step, only the final flush is used.
    private func write(back offset: Int64, _ count: Int, of staged: StagedFile) {
        guard isFlushed, source.metadata.size > Self.step else { return }
        cal_start_writeback(staged.descriptor, offset, Int64(count))
    }

    /// The size of a small file, since a buffer must be zeroed first; otherwise the size that fits into a processor's
    /// cache.
    private var bufferSize: Int {
        source.metadata.size == 0 ? 1 << 18 : min(Int(clamping: source.metadata.size), 1 << 18)
    }

    /// The size up to which holes are not looked for.
    private static let smallSize: Int64 = 64 << 10

    /// The number of bytes per call, limited so that a stop takes effect soon.
    private static let step: Int64 = 8 << 20

    private func writeError(_ error: Int32, _ staged: StagedFile) -> FileError {
        FileError(error, "cannot copy to '\(staged.directory.path)'")
    }
}
