import FileEvents
import Rules

/// Jobs by their ids, each apart from the table: so that is small, and costs little when it grows.
struct JobStore {
    private var boxes: [JobID: Box<Job>] = [:]

    subscript(id: JobID) -> Job? {
        get { boxes[id]?.value }
        set { boxes[id] = newValue.map(Box.init) }
    }

    /// All of them, in no order.
    var jobs: some Sequence<Job> { boxes.values.lazy.map(\.value) }

    mutating func removeValue(forKey id: JobID) -> Job? { boxes.removeValue(forKey: id)?.value }
}
