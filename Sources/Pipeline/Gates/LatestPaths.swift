package import System

/// A value for each of the latest paths, up to a number.
package struct LatestPaths<Value: Sendable>: Sendable {
    private let capacity: Int
    private var values: [PathBytes: Value] = [:]
    /// The paths in the order in which they were added, the oldest one at `oldest` once there are enough.
    private var order: [PathBytes] = []
    private var oldest = 0

    package init(capacity: Int) { self.capacity = capacity }

    package subscript(path: PathBytes) -> Value? { values[path] }

    /// Stores the value of a path, which keeps its age if it has a value.
    package mutating func store(_ value: Value, for path: PathBytes) {
        guard values.updateValue(value, forKey: path) == nil else { return }
        if order.count < capacity {
            order.append(path)
        } else {
            values[order[oldest]] = nil
            order[oldest] = path
            oldest = (oldest + 1) % capacity
        }
    }
}
