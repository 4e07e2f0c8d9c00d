package import JSON
import Rules

// The string in the column `undone` of an attempt.
extension UndoRecord: JSONRecord {
    package static var blank: UndoRecord { UndoRecord(time: FileMark.blank.modified, reasons: []) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("time", &time)
        var left = reasons.map { $0.map(JSONValue.string) ?? .null }
        json.member("left", &left)
        reasons = left.map(\.string)
    }
}
