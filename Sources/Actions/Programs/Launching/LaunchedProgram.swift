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
    /// What was wrong with its file, if it could not be started for that.
    private(set) var miss: Ended.Miss?
    /// Whether it runs, or has run.
    var hasStarted: Bool {
        switch end {
        case nil: launcher.hasBegun
        case .couldNotStart, .notLaunched: hadStarted
        default: true
        }
    }
    private var hadStarted = false
    /// When a launcher that says nothing is given up, and then killed.
    private var deadline: ContinuousClock.Instant?
    private var isGivenUp = false
    private var isAsked = false

    init(
        _ launcher: LauncherProcess, of pool: LauncherPool, input: OwnedDescriptor, output: OwnedDescriptor,
        error: OwnedDescriptor
    ) {
        self.launcher = launcher
        self.pool = pool
        self.input = input
        self.output = output
        self.error = error
        deadline = .now + Self.startPatience
    }

    /// Readable when there is something for ``lookForEnd()``.
    var descriptor: Int32 { launcher.control }

    /// Asks it to end; it is killed after its grace.
    ///
    /// - Parameter grace: When that is over and five seconds more, the launcher is to have done so.
    func terminate(grace: Duration) { tell(.terminate, within: grace + Self.patience) }

    /// Kills it, and all that descends from it.
    func kill() { tell(.kill, within: Self.patience) }

    private func tell(_ order: LauncherProcess.Order, within limit: Duration) {
        guard end == nil else { return }
        isAsked = true
        isGivenUp = isGivenUp || !launcher.tell(order)
        deadline = .now + (isGivenUp ? .zero : limit)
    }

    /// For how long a launcher may do nothing that should do something.
    private static let patience = Duration.seconds(5)
    /// For how long a program may take to start, be it on a slow file system.
    private static let startPatience = Duration.seconds(60)

    /// When ``lookAfterLauncher(at:)`` wants to be called; nil for never.
    var nextLook: ContinuousClock.Instant? { end == nil ? deadline : nil }

    /// Ends a launcher that does not do what it should: wakes it, if somebody has stopped it, and kills it later.
    func lookAfterLauncher(at now: ContinuousClock.Instant) {
        guard end == nil, let moment = deadline, now >= moment else { return }
        if !isAsked, launcher.hasBegun {
            // The program has begun without the launcher, which may be stopped, and tell nothing of its end.
            _ = launcher.resumeItself()
            deadline = now + Self.startPatience
            return
        }
        launcher.resume()
        deadline = isGivenUp ? nil : now + Self.patience
        if isGivenUp { launcher.kill() }
        isGivenUp = true
    }

    /// Wakes a launcher that somebody has stopped, and that may have to tell of an end; false when nobody has.
    func wakeLauncher() -> Bool { end == nil && launcher.resumeItself() }

    /// Whether the program has ended, and with it all that descends from it; doesn't block.
    func lookForEnd() -> Bool {
        while end == nil {
            var count: Int64 = 0
            withUnsafeTemporaryAllocation(byteCount: 4 << 10, alignment: 8) { buffer in
                count = cal_receive(launcher.control, buffer.baseAddress, buffer.count)
                if count > 0 { message += buffer[..<Int(count)] }
            }
            if count == -Int64(EAGAIN) || count == -Int64(EINTR) { return false }
            guard count > 0 else {
                hadStarted = launcher.hasBegun
                end = endOfLauncher()
                return true
            }
            readMessage()
        }
        return true
    }

    /// Reads what the launcher tells, when all of that is there; then it is free for another program.
    private func readMessage() {
        guard message.count >= 12 else { return }
        let (news, status, length) = message.withUnsafeBytes { bytes in
            (
                bytes.loadUnaligned(as: UInt32.self), bytes.loadUnaligned(fromByteOffset: 4, as: Int32.self),
                bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
            )
        }
        guard message.count >= 12 + Int(length) else { return }
        let words = String(decoding: message[12..<12 + Int(length)], as: UTF8.self)
        switch news {
        case 0: end = status & 0x7F == 0 ? .exited(status: status >> 8 & 0xFF) : .signalled(status & 0x7F)
        case 1, 3, 4: end = .couldNotStart(words)
        default: end = .notLaunched(words)
        }
        if news == 3 { miss = .gone }
        if news == 4 { miss = .forbidden }
        // One that could not even read its plan, or prepare for it, ends.
        if news == 0 || status == 0 { pool.give(launcher) }
    }

    /// What the end of the launcher says, when it has said nothing before.
    private func endOfLauncher() -> Ended.Way {
        guard hadStarted else { return .notLaunched("alight-launch has ended before the program began") }
        // Should another part of the process have reaped the child, its status is lost, and it counts as killed.
        let (status, isSignal) = launcher.end.wait(10) ?? (SIGKILL, true)
        return isSignal ? .signalled(status) : .notLaunched("alight-launch has ended")
    }
}
