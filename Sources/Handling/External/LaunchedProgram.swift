import CAlightLinux
import Glibc

/// A program that `alight-launch` runs, with our ends of its pipes; used on one thread.
///
/// When nobody refers to it any more before it has ended, it is killed, with all that descends from it.
final class LaunchedProgram {
    let input: OwnedDescriptor
    let output: OwnedDescriptor
    let error: OwnedDescriptor
    private let launcher: LauncherProcess
    private let pool: LauncherPool
    private var message: [UInt8] = []
    /// How the program ended, once that is known.
    private(set) var end: Ended.Way?

    init(
        _ launcher: LauncherProcess, of pool: LauncherPool, input: OwnedDescriptor, output: OwnedDescriptor,
        error: OwnedDescriptor
    ) {
        self.launcher = launcher
        self.pool = pool
        self.input = input
        self.output = output
        self.error = error
        for descriptor in [input, output, error] { _ = fcntl(descriptor.raw, F_SETFL, O_NONBLOCK) }
    }

    /// Readable when there is something for ``lookForEnd()``.
    var descriptor: Int32 { launcher.control }

    func terminate() { if end == nil { launcher.tell(.terminate) } }

    /// Kills it, and all that descends from it.
    func kill() { if end == nil { launcher.tell(.kill) } }

    /// Kills the launcher, which should have killed the program long ago.
    func killLauncher() { if end == nil { launcher.kill() } }

    /// Whether the program has ended, and with it all that descends from it; doesn't block.
    func lookForEnd() -> Bool {
        while end == nil {
            var count: Int64 = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: 16 << 10) { buffer, size in
                count = cal_receive(launcher.control, buffer.baseAddress, buffer.count)
                size = Int(max(count, 0))
            }
            if count == -Int64(EAGAIN) || count == -Int64(EINTR) { return false }
            guard count > 0 else {
                end = endOfLauncher()
                return true
            }
            message += bytes
            readMessage()
        }
        return true
    }

    /// Reads how the program ended, when all of that is there; the launcher is free for another one then.
    private func readMessage() {
        guard message.count >= 12 else { return }
        let (ending, status, length) = message.withUnsafeBytes { bytes in
            (
                bytes.load(as: UInt32.self), bytes.load(fromByteOffset: 4, as: Int32.self),
                bytes.load(fromByteOffset: 8, as: UInt32.self)
            )
        }
        guard message.count >= 12 + Int(length) else { return }
        let words = String(decoding: message.dropFirst(12), as: UTF8.self)
        end =
            switch ending {
            case 0: status & 0x7F == 0 ? .exited(status: status >> 8 & 0xFF) : .signalled(status & 0x7F)
            case 1: .couldNotStart(words)
            default: .notLaunched(words)
            }
        pool.give(launcher)
    }

    /// What the end of the launcher says, when it has said nothing before.
    private func endOfLauncher() -> Ended.Way {
        // Should another part of the process have reaped the child, its status is lost, and it counts as killed.
        let (status, isSignal) = launcher.end.wait(10) ?? (SIGKILL, true)
        return isSignal ? .signalled(status) : .notLaunched("alight-launch has ended")
    }
}
