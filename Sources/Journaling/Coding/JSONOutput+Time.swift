import FileEvents
import PluginProtocol

extension JSONOutput {
    /// Writes the seconds since 1970 and the nanoseconds after them.
    mutating func time(_ time: Timestamp) {
        array { json in
            json.element()
            json.number(time.seconds)
            json.element()
            json.number(Int64(time.nanoseconds))
        }
    }
}
