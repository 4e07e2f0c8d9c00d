import FileEvents
import System

/// The last files that actions have left, which are finished when other rules see them: how long they take to settle says
/// nothing of other programs.
struct RecentOutputs {
    /// Most files that are remembered.
    static let capacity = 4_096

    /// When the action ended.
    private var ended: [PathBytes: Timestamp] = [:]
    /// The files in the order in which they were noted.
    private var order: [PathBytes] = []
    private var oldest = 0

    mutating func insert(_ outputs: [PathBytes], at time: Timestamp) {
        for output in outputs where ended.updateValue(time, forKey: output) == nil {
            if order.count < Self.capacity {
                order.append(output)
            } else {
                ended[order[oldest]] = nil
                order[oldest] = output
                oldest = (oldest + 1) % Self.capacity
            }
        }
    }

    /// Whether an action has left the file as it is: nobody has changed it since.
    func contains(_ path: PathBytes, _ snapshot: Snapshot) -> Bool {
        guard let time = ended[path] else { return false }
        return snapshot.changed <= time
    }
}
