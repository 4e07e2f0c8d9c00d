@preconcurrency import Dispatch
import FileEvents
import FileWatching
import Logging
import Settling
import Synchronization

/// A program that serves, with all by which its processes could differ.
struct ServedProgram: Sendable {
    /// `plugin 'resize'`, for messages.
    var title: String
    /// What is started; its working folder is empty where each process gets a folder of its own.
    var command: Command
    /// Most processes at once.
    var parallel: Int
    /// How many requests a process takes at once, if it does not say so itself.
    var concurrent: Int
}

/// The serving processes of one program, the threads that talk with them, and those that wait for answers.
final class ServingPool: Sendable {
    /// What the thread of a process is to do.
    enum Order {
        case write([UInt8])
        case endOfFile
        case terminate
        case kill
    }

    private struct State: Sendable {
        var pool: ServePool
        var tickets: [Int: ServeTicket] = [:]
        var count = 0
        var wakers: [Int: Waker] = [:]
        /// Of the request that came last, without what belongs to its job.
        var logger: Logger?
        /// The next start that those who wait know of.
        var nextStart: ContinuousClock.Instant?
        /// Whether another pool takes its place, so that nothing would end its processes.
        var isDropped = false
    }

    let program: ServedProgram
    let launcher: ProcessLauncher
    let scratchFolders: ScratchFolders
    private let state: Mutex<State>
    private let seats: SharedSeats
    private let place: Int
    /// Entered by each thread of a process.
    private let threads = DispatchGroup()

    /// - Parameters:
    ///   - program: What is started.
    ///   - limits: Of each conversation.
    ///   - seats: How many processes there may be, together with other pools.
    ///   - launcher: Starts them.
    ///   - scratchFolders: Where they work.
    init(
        _ program: ServedProgram, limits: ServeLimits, seats: SharedSeats, launcher: ProcessLauncher,
        scratchFolders: ScratchFolders
    ) {
        self.program = program
        self.launcher = launcher
        self.scratchFolders = scratchFolders
        self.seats = seats
        place = seats.nextPlace()
        var pool = ServePool(parallel: program.parallel, concurrent: program.concurrent, limits: limits)
        pool.seats = 0
        state = Mutex(State(pool: pool))
        seats.add(self, at: place)
    }

    // MARK: - Those who ask

    /// Hands a request to a process, and waits for what becomes of it.
    ///
    /// - Parameters:
    ///   - ticket: The request.
    ///   - stop: Cancels it when raised.
    ///   - isAgain: Whether a process has died with it.
    /// - Returns: What became of it; nil when the pool has been dropped meanwhile, and another one is to be asked.
    func perform(_ ticket: ServeTicket, stop: StopSignal, isAgain: Bool) -> ServePool.Reply? {
        let number = change { state, now -> Int? in
            guard !state.isDropped else { return nil }
            state.count += 1
            let number = state.count
            state.tickets[number] = ticket
            var logger = ticket.logger
            logger[metadataKey: "job"] = nil
            logger[metadataKey: "rule"] = nil
            state.logger = logger
            state.pool.submit(
                number, id: ticket.id, attempt: ticket.attempt, timeout: ticket.timeout, isAgain: isAgain, at: now)
            return number
        }
        guard let number else { return nil }
        let observation = stop.observe { [self] in change { $0.pool.cancel(number, at: $1) } }
        defer { stop.forget(observation) }
        while true {
            let nextStart = state.withLock { $0.pool.nextStart }
            if let reply = ticket.wait(until: nextStart) { return reply }
            change { $0.pool.dispatch(at: $1) }
        }
    }

    /// Looks whether a seat has become free.
    func lookForSeat() { change { $0.pool.dispatch(at: $1) } }

    /// Makes room for processes of other surroundings.
    func giveWay() { change { $0.pool.giveWay(at: $1) } }

    /// Lets its processes stay.
    func stay() { change { state, _ in state.pool.stay() } }

    /// Replaces all processes, since their program has changed.
    func replace() { change { $0.pool.replace(at: $1) } }

    /// Gives it up if it has neither a process nor a request, and nothing has to be remembered of it.
    ///
    /// - Returns: Whether it is given up; nothing is taken then.
    func drop() -> Bool {
        let isDropped = state.withLock { state in
            state.isDropped = state.tickets.isEmpty && state.pool.isForgettable(at: .now)
            return state.isDropped
        }
        if isDropped { seats.remove(place) }
        return isDropped
    }

    /// Ends all processes, and waits for that.
    func close(isAtOnce: Bool) {
        beginToClose(isAtOnce: isAtOnce)
        threads.wait()
    }

    /// Begins to end all processes.
    func beginToClose(isAtOnce: Bool) { change { $0.pool.close(isAtOnce: isAtOnce, at: $1) } }

    // MARK: - The threads of the processes

    /// What a process is to be told, and when to ask again at the latest.
    func orders(for process: Int) -> (orders: [Order], deadline: ContinuousClock.Instant?) {
        let (commands, deadline) = change(except: process) { state, now in
            let commands = state.pool.commands(of: process, at: now).map {
                command -> (ServeCommand, ServeTicket?) in
                if case .run(let number) = command { (command, state.tickets[number]) } else { (command, nil) }
            }
            return (commands, state.pool.deadline(of: process))
        }
        let orders = commands.compactMap { command, ticket -> Order? in
            switch command {
            case .run:
                ticket.map { .write($0.line(deadline: DiskProbe.now().advanced(by: $0.timeout).description)) }
            case .endOfFile: .endOfFile
            case .terminate: .terminate
            case .kill: .kill
            case .hello, .cancel, .ping: command.line.map { .write($0) }
            }
        }
        return (orders, deadline)
    }

    func receive(_ message: ServeMessage, from process: Int) {
        change(except: process) { $0.pool.receive(message, from: process, at: $1) }
    }

    func receiveTooLong(_ start: [UInt8], from process: Int) {
        change(except: process) { state, _ in state.pool.receiveTooLong(start, from: process) }
    }

    func lose(_ fault: ServeSession.Fault, of process: Int) {
        change(except: process) { $0.pool.lose(fault, of: process, at: $1) }
    }

    func end(_ process: Int, _ way: Ended.Way, lastLine: String?) {
        change { state, now in
            state.wakers[process] = nil
            state.pool.end(process, way, lastLine: lastLine, at: now)
        }
    }

    /// The requests that a process works on.
    func openTickets(of process: Int) -> [ServeTicket] {
        state.withLock { state in state.pool.openRequests(of: process).compactMap { state.tickets[$0] } }
    }

    /// Where lines go that belong to no request in particular.
    var logger: Logger? { state.withLock { $0.logger } }

    // MARK: - Changes

    /// What a change has others do.
    private struct Effects {
        var wakes: [Waker] = []
        var progress: [(ServeTicket, Double, String?)] = []
        var replies: [(ServeTicket, ServePool.Reply)] = []
        var overdue: [ServeTicket] = []
        var warnings: [String] = []
    }

    /// Changes the state, and does what follows from that.
    ///
    /// - Parameters:
    ///   - process: One whose thread calls this, and looks at its orders by itself.
    ///   - body: The change, with the present.
    /// - Returns: What the change returns.
    private func change<Result: Sendable>(
        except process: Int? = nil, _ body: (inout State, ContinuousClock.Instant) -> Result
    ) -> Result {
        let (result, effects, logger, news) = state.withLock { state in
            let now = ContinuousClock.now
            let result = body(&state, now)
            var effects = Effects()
            var news = SharedSeats.News()
            while true {
                news.add(seats.settle(&state.pool, at: place, now: now))
                let decisions = state.pool.takeDecisions()
                if decisions.isEmpty { break }
                for decision in decisions {
                    switch decision {
                    case .start(let number): start(number, &state)
                    case .reply(let number, let reply):
                        if let ticket = state.tickets.removeValue(forKey: number) {
                            effects.replies.append((ticket, reply))
                        }
                    case .progress(let number, let fraction, let message):
                        if let ticket = state.tickets[number] { effects.progress.append((ticket, fraction, message)) }
                    case .overdue(let number): if let ticket = state.tickets[number] { effects.overdue.append(ticket) }
                    case .warn(let text): effects.warnings.append(text)
                    }
                }
            }
            effects.wakes = state.pool.busy.compactMap { $0 == process ? nil : state.wakers[$0] }
            let nextStart = state.pool.nextStart
            if nextStart != state.nextStart {
                state.nextStart = nextStart
                for number in state.pool.waitingRequests { state.tickets[number]?.poke() }
            }
            return (result, effects, state.logger, news)
        }
        // Not while others wait for the lock: those who are woken want it, and who reads the log may be slow.
        for waker in effects.wakes { waker.wake() }
        for (ticket, fraction, message) in effects.progress { ticket.progress(fraction, message) }
        for (ticket, reply) in effects.replies { ticket.deliver(reply) }
        for ticket in effects.overdue {
            let text = OutcomeTable.overdue(program.title, after: ticket.timeout, grace: program.command.grace)
            ticket.logger.warning("\(text)")
        }
        for text in effects.warnings { logger?.warning("\(program.title) \(text)") }
        seats.tell(news)
        return result
    }

    private func start(_ number: Int, _ state: inout State) {
        guard let waker = Waker() else {
            state.pool.end(number, .notLaunched("too few descriptors are left"), lastLine: nil, at: .now)
            return
        }
        state.wakers[number] = waker
        threads.enter()
        let thread = WorkerThread(name: "alight-serve") { [self] in
            ServingProcess.run(number, of: self, waker: waker)
            threads.leave()
        }
        guard let thread else {
            threads.leave()
            state.wakers[number] = nil
            state.pool.end(number, .notLaunched("there is no room for a thread"), lastLine: nil, at: .now)
            return
        }
        thread.detach()
    }
}
