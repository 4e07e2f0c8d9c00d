import FileEvents
import System
import TestKit

extension FileEvent {
    /// Creates an event with a value in every field.
    static func full(_ generator: inout SeededGenerator) -> FileEvent {
        func bytes(_ most: Int) -> [UInt8] {
            (0..<Int.random(in: 1...most, using: &generator)).map { _ in UInt8.random(in: 1...255, using: &generator) }
        }
        func time() -> Timestamp {
            Timestamp(
                seconds: Int64.random(in: -62_135_596_800...253_402_300_799, using: &generator),
                nanoseconds: UInt32.random(in: 0...999_999_999, using: &generator))
        }
        func snapshot() -> Snapshot {
            let born = time()
            return Snapshot(
                identity: FileIdentity(
                    deviceMajor: .random(in: 0 ... .max, using: &generator),
                    deviceMinor: .random(in: 0 ... .max, using: &generator),
                    inode: .random(in: 1 ... .max, using: &generator),
                    birth: born.seconds &* 1_000_000_000 &+ Int64(born.nanoseconds)),
                type: FileType.allCases.randomElement(using: &generator) ?? .file,
                size: .random(in: 0 ... .max, using: &generator), modified: time(), changed: time(), born: born,
                mode: .random(in: 0...0o7777, using: &generator), uid: .random(in: 0 ... .max, using: &generator),
                gid: .random(in: 0 ... .max, using: &generator), links: .random(in: 0 ... .max, using: &generator),
                mount: .random(in: 1 ... .max, using: &generator),
                extended: [ExtendedAttribute(name: PathBytes(bytes(20)), value: bytes(40) + [0])],
                digest: bytes(32), delivered: .random(in: 0 ... .max, using: &generator))
        }
        let names = ["\"quoted\"\\", "line\nbreak\u{1}\u{7f}", "Ünïcodé 🗼", "xattr:user.é"]
        var event = FileEvent(
            kind: .modified, path: PathBytes([0x2f] + bytes(30)), root: PathBytes([0x2f] + bytes(3)),
            from: PathBytes([0x2f] + bytes(9)), snapshot: snapshot(), before: snapshot(), changed: names,
            isReplaced: true, isByMove: true, sameAs: [PathBytes(bytes(5)), PathBytes("/plain")], children: 7,
            tail: TailText(
                offset: .random(in: 0 ... .max, using: &generator), bytes: bytes(50), isReset: true,
                remaining: .random(in: 0 ... .max, using: &generator)), origin: .poll, time: time())
        event.writer = .process(
            WritingProcess(
                pid: .random(in: 1 ... .max, using: &generator), name: PathBytes(bytes(15)),
                executable: PathBytes([0x2f] + bytes(20)), uid: .random(in: 0 ... .max, using: &generator)))
        return event
    }
}
