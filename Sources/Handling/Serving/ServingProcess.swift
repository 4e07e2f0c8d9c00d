import CAlightLinux
import FileEvents
import Foundation
import Glibc
import Logging

/// A serving process from its start to its end, on a thread of its own.
final class ServingProcess {
    private let number: Int
    private let pool: ServingPool
    private let waker: Waker
    private let process: LaunchedProgram
    private let grace: Duration

    /// What has to be written.
    private var outbox: [UInt8] = []
    private var written = 0
    /// Whether the input is closed once all is written.
    private var isClosing = false
    private var lines = ServeLines()
    private var log = ServeLog()

    /// Starts a process, stays with it to its end, and tells the pool of that.
    static func run(_ number: Int, of pool: ServingPool, waker: Waker) {
        var command = pool.program.command
        var scratch: PathBytes?
        do throws(ScratchFailure) {
            let folder = try pool.scratchFolders.make()
            scratch = folder
            command.environment.append(("TMPDIR", folder.bytes))
            if command.directory.path.bytes.isEmpty { command.directory = ProgramPath(folder) }
        } catch {
            pool.end(number, .notLaunched(error.message), lastLine: nil)
            return
        }
        let way: Ended.Way
        var lastLine: String?
        do throws(LaunchFailure) {
            let process = try pool.launcher.start(command)
            let serving = ServingProcess(number, pool, waker, process, grace: command.grace)
            way = serving.stay()
            lastLine = serving.log.lastLine
        } catch {
            way = error.isForGood ? .couldNotStart(error.reason) : .notLaunched(error.reason)
        }
        if let scratch { try? pool.scratchFolders.remove(scratch) }
        pool.end(number, way, lastLine: lastLine)
    }

    private init(
        _ number: Int, _ pool: ServingPool, _ waker: Waker, _ process: LaunchedProgram, grace: Duration
    ) {
        self.number = number
        self.pool = pool
        self.waker = waker
        self.process = process
        self.grace = grace
    }

    private func stay() -> Ended.Way {
        while true {
            let (orders, deadline) = pool.orders(for: number)
            for order in orders { obey(order) }
            write()
            var descriptors = [
                pollfd(fd: process.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: waker.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: written < outbox.count ? process.input.raw : -1, events: Int16(POLLOUT), revents: 0),
                pollfd(fd: process.output.raw, events: Int16(POLLIN), revents: 0),
                pollfd(fd: process.error.raw, events: Int16(POLLIN), revents: 0),
            ]
            let left = [deadline, process.nextLook].compactMap(\.self).min().pollLimit
            _ = cal_poll(&descriptors, UInt(descriptors.count), left)
            if descriptors[0].revents != 0, process.lookForEnd() { break }
            if descriptors[1].revents != 0 { waker.clear() }
            if descriptors[2].revents != 0 { write() }
            // What was logged before an answer belongs to its request.
            if descriptors[4].revents != 0 || descriptors[3].revents != 0 { _ = readError() }
            if descriptors[3].revents != 0 { _ = readOutput() }
            process.lookAfterLauncher(at: .now)
        }
        return finish()
    }

    private func finish() -> Ended.Way {
        process.input.close()
        // The launcher has ended all that could write. Should a process have escaped, no more is read than a pipe holds.
        var most = 16
        while most > 0, readError() { most -= 1 }
        most = 16
        while most > 0, readOutput() { most -= 1 }
        log.finish(pool.openTickets(of: number), pool.logger)
        return process.end ?? .signalled(SIGKILL)
    }

    // MARK: - Orders

    private func obey(_ order: ServingPool.Order) {
        switch order {
        case .write(let line): if process.input.raw >= 0 { outbox += line }
        case .endOfFile: isClosing = true
        case .terminate: process.terminate(grace: grace)
        case .kill: process.kill()
        }
    }

    // MARK: - The streams

    private func write() {
        while written < outbox.count, process.input.raw >= 0 {
            let count = outbox.withUnsafeBytes { bytes in
                Glibc.write(process.input.raw, bytes.baseAddress.map { $0 + written }, bytes.count - written)
            }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return }
            guard count >= 0 else {
                closeInput()
                pool.lose(.closedInput, of: number)
                return
            }
            written += count
        }
        outbox.removeAll(keepingCapacity: outbox.count < 1 << 16)
        written = 0
        if isClosing { closeInput() }
    }

    private func closeInput() {
        process.input.close()
        outbox = []
        written = 0
    }

    /// Reads once; false when nothing more comes now.
    private func readOutput() -> Bool {
        guard let bytes = process.output.readAvailable() else { return false }
        guard !bytes.isEmpty else {
            process.output.close()
            pool.lose(.closedOutput, of: number)
            return false
        }
        for piece in lines.add(bytes) {
            switch piece {
            case .line(let line):
                if let message = ServeMessage(line: line[...]) { pool.receive(message, from: number) }
            case .tooLong(let start):
                pool.receiveTooLong(start, from: number)
                // With the pipe gone, even a program that ignores SIGTERM can't go on printing.
                process.output.close()
                return false
            }
        }
        return true
    }

    private func readError() -> Bool {
        guard let bytes = process.error.readAvailable() else { return false }
        guard !bytes.isEmpty else {
            process.error.close()
            return false
        }
        log.take(bytes, pool.openTickets(of: number), pool.logger)
        return true
    }
}
