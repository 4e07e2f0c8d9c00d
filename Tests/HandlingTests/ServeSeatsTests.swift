import Handling
import Testing

@Suite("The seats that pools share")
struct ServeSeatsTests {
    @Test func `a pool without a seat comes before one that has some`() {
        var seats = ServeSeats(most: 2)
        #expect(seats.take(for: 1).isTaken && seats.take(for: 1).isTaken)
        #expect(seats.take(for: 1) == (false, true))
        #expect(!seats.isShort, "who has a seat does not starve")
        #expect(seats.take(for: 2) == (false, true))
        #expect(seats.take(for: 2) == (false, false))
        #expect(seats.isShort && seats.next == nil && seats.holders == [1])
        seats.release(of: 1)
        #expect(seats.next == 2)
        #expect(seats.take(for: 1) == (false, false))
        #expect(seats.take(for: 2).isTaken)
        #expect(!seats.isShort && seats.holders == [1, 2])
        seats.release(of: 2)
        #expect(seats.next == 1)
        seats.withdraw(1)
        #expect(seats.next == nil)
    }

    @Test func `fewer seats are not taken from those who have them`() {
        var seats = ServeSeats(most: 3)
        for _ in 1...3 { #expect(seats.take(for: 1).isTaken) }
        seats.change(most: 1)
        seats.release(of: 1)
        seats.release(of: 1)
        #expect(!seats.take(for: 2).isTaken)
        seats.release(of: 1)
        #expect(seats.take(for: 2).isTaken)
    }
}
