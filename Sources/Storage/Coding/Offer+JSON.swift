package import JSON
package import Reconciling

// The string in the column `progress`: everything except the key, the state, the attempt and the event.
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
