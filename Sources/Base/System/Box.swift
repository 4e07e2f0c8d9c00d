/// An immutable value stored by reference, so that its owner needs little memory when there is no value, or passes it
/// on.
///
/// To change the value, create another box.
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
