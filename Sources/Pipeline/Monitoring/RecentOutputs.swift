import System

/// The latest files written by actions, whose settle times are not counted.
///
/// They are finished when other rules see them, so their settle times do not describe other programs.
struct RecentOutputs {
    /// The maximum number of files.
    static let capacity = 4_096

    /// The time at which the action finished, by file.
    private var ended: [PathBytes: Timestamp] = [:]
    /// The files in the order in which they were added.
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

    /// Whether the file is unchanged since an action wrote it.
    func contains(_ path: PathBytes, _ snapshot: Snapshot) -> Bool {
        guard let time = ended[path] else { return false }
        return snapshot.changed <= time
    }
}
