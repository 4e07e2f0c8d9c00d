import Synchronization

/// The seats of one plugin, and the pools that share them.
///
/// A pool's own lock may be held when this one is taken, never the other way round.
final class SharedSeats: Sendable {
    /// Which other pools are to be told of something, once no lock is held.
    struct News {
        /// One that may take a seat now.
        var next: Set<Int> = []
        /// Those that are to make room.
        var givingWay: Set<Int> = []
        /// Those that need not any more.
        var staying: Set<Int> = []

        mutating func add(_ other: News) {
            next.formUnion(other.next)
            givingWay.formUnion(other.givingWay)
            staying.formUnion(other.staying)
        }
    }

    private struct Member: Sendable {
        weak var pool: ServingPool?
    }

    private struct State: Sendable {
        var seats: ServeSeats
        var places = 0
        var pools: [Int: Member] = [:]
    }

    private let state: Mutex<State>

    init(most: Int) { state = Mutex(State(seats: ServeSeats(most: most))) }

    func change(most: Int) { state.withLock { $0.seats.change(most: most) } }

    func nextPlace() -> Int {
        state.withLock { state in
            state.places += 1
            return state.places
        }
    }

    func add(_ pool: ServingPool, at place: Int) { state.withLock { $0.pools[place] = Member(pool: pool) } }

    /// Forgets a pool that has no seat and wants none.
    func remove(_ place: Int) {
        state.withLock { state in
            state.pools[place] = nil
            state.seats.withdraw(place)
        }
    }

    /// Gives the pool the seats that it wants and can have, and takes those that it does not need.
    func settle(_ pool: inout ServePool, at place: Int, now: ContinuousClock.Instant) -> News {
        state.withLock { state in
            var news = News()
            let wasShort = state.seats.isShort
            for _ in 0..<pool.takeReturnedSeats() { state.seats.release(of: place) }
            while pool.seats > pool.taken {
                pool.seats -= 1
                state.seats.release(of: place)
            }
            while pool.wantsSeat(at: now) {
                let (isTaken, hasBegunToWait) = state.seats.take(for: place)
                if hasBegunToWait || isTaken, state.seats.isShort {
                    news.givingWay.formUnion(state.seats.holders)
                }
                guard isTaken else { break }
                pool.seats += 1
                pool.dispatch(at: now)
            }
            if !pool.wantsSeat(at: now) { state.seats.withdraw(place) }
            if let next = state.seats.next, next != place { news.next.insert(next) }
            if wasShort, !state.seats.isShort { news.staying.formUnion(state.seats.holders) }
            return news
        }
    }

    /// Tells the others; not while a lock is held.
    func tell(_ news: News) {
        let pools = { (places: Set<Int>) in
            self.state.withLock { state in places.sorted().compactMap { state.pools[$0]?.pool } }
        }
        for pool in pools(news.staying) { pool.stay() }
        for pool in pools(news.givingWay) { pool.giveWay() }
        for pool in pools(news.next) { pool.lookForSeat() }
    }
}
