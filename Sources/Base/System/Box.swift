/// A value that lies apart from what has it, so that it takes no room where there is none, or where it is only passed on.
///
/// It is never changed; who wants another value makes another box.
package final class Box<Value: Sendable>: Sendable {
    package let value: Value

    package init(_ value: Value) { self.value = value }
}

extension Box: Equatable where Value: Equatable {
    package static func == (left: Box, right: Box) -> Bool { left === right || left.value == right.value }
}

extension Box: Hashable where Value: Hashable {
    package func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
