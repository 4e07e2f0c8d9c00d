import FileEvents
import GRDB
package import Reconciling
package import PluginProtocol

/// The running, retrying and failed offers.
struct OfferTable {
    private let byRule: SQLStatement
    private let upsert: SQLStatement
    private let delete: SQLStatement
    private let errors: ReadErrors

    init(_ database: Database, _ errors: ReadErrors) throws {
        self.errors = errors
        byRule = try SQLStatement(
            "SELECT number, state, attempt, due, event, progress FROM offers WHERE rule = ? ORDER BY number",
            in: database)
        upsert = try SQLStatement("INSERT OR REPLACE INTO offers VALUES (?, ?, ?, ?, ?, ?, ?)", in: database)
        delete = try SQLStatement("DELETE FROM offers WHERE rule = ? AND number = ?", in: database)
    }

    /// The offers of a rule, sorted by number.
    func offers(of rule: RuleID, at clocks: ClockPair) throws -> [Offer] {
        var offers: [Offer] = []
        try byRule.each {
            $0.bind(rule.number)
        } _: { row in
            if let offer = try errors.row({ try Self.offer(row, clocks) }) { offers.append(offer) }
        }
        return offers
    }

    private static func offer(_ row: SQLStatement, _ clocks: ClockPair) throws -> Offer {
        guard let event = row.utf8(4).flatMap({ FileEvent(record: $0) }), event.path.isAbsoluteName,
            var offer = row.utf8(5).flatMap({ Offer(record: $0) })
        else { throw UnreadableRow(table: "offers") }
        offer.number = UInt64(bitPattern: row.integer(0))
        offer.event = event
        offer.attempt = Int(row.integer(2))
        switch row.text(1) {
        case "running": offer.state = .started
        case "retrying": offer.state = .retrying(clocks.instant(of: row.integer(3)))
        case "failed": offer.state = .failed
        default: throw UnreadableRow(table: "offers")
        }
        return offer
    }

    func write(_ offer: Offer, of rule: RuleID, at clocks: ClockPair) throws {
        try upsert.run {
            $0.bind(rule.number)
            $0.bind(Int64(bitPattern: offer.number))
            switch offer.state {
            case .leased, .started: $0.bind("running")
            case .retrying: $0.bind("retrying")
            case .failed: $0.bind("failed")
            }
            $0.bind(Int64(offer.attempt))
            if case .retrying(let due) = offer.state { $0.bind(clocks.columnValue(of: due)) } else { $0.bindNull() }
            $0.bind(utf8: offer.event.record)
            $0.bind(utf8: offer.record)
        }
    }

    func delete(_ number: UInt64, of rule: RuleID) throws {
        try delete.run {
            $0.bind(rule.number)
            $0.bind(Int64(bitPattern: number))
        }
    }
}

// The string in the column `progress`: all but the key, the state, the attempt and the event.
extension Offer: JSONRecord {
    package static var blank: Offer { Offer(number: 0, event: .blank) }

    package mutating func code(with json: inout JSONCoder) {
        var steps = steps == 0 ? nil : steps
        json.member("steps", &steps)
        self.steps = steps ?? 0
        json.member(flag: "removed_input", &hasRemovedInput)
        json.member(flag: "interrupted", &isInterrupted)
        json.member(flag: "uncertain", &isUncertain)
        json.member(flag: "sent", &isSent)
        json.member(flag: "may_remove_input", &mayRemoveInput)
        json.member("left", &left)
        json.member(flag: "repeat", &isRepeat)
        json.member(flag: "named", &wasNamed)
        json.member(flag: "missed_hints", &missedHints)
        json.member("changed", &changed)
    }
}
