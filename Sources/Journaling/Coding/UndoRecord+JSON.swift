import PluginProtocol
import Rules

// The text in the column `undone` of an attempt.
extension UndoRecord {
    var jsonText: [UInt8] {
        var json = JSONOutput(capacity: 128)
        json.object { json in
            json.key("time")
            json.time(time)
            json.key("left")
            json.array { json in
                for reason in reasons {
                    json.element()
                    if let reason { json.string(reason) } else { json.raw("null") }
                }
            }
        }
        return json.bytes
    }

    init?(_ json: JSONValue) {
        guard let time = json.time("time"), let reasons = json["left"]?.array else { return nil }
        self.init(time: time, reasons: reasons.map(\.string))
    }
}

extension [FileChange] {
    /// The text in the column `changes` of an attempt; nil when there are none.
    var jsonText: [UInt8]? {
        guard !isEmpty else { return nil }
        var json = JSONOutput(capacity: 512)
        write(to: &json)
        return json.bytes
    }
}
