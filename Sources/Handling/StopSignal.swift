import CAlightLinux
import Glibc
import Synchronization

/// Tells running actions that the program stops.
///
/// It can be looked at, and waited for beside other descriptors with poll(2).
package final class StopSignal: Sendable {
    private let raised = Atomic<Bool>(false)
    /// Becomes readable when the signal is raised, and stays so; -1 when the machine is out of descriptors.
    package let descriptor: Int32

    package init() { descriptor = max(cal_eventfd(), -1) }

    deinit { if descriptor >= 0 { close(descriptor) } }

    package var isRaised: Bool { raised.load(ordering: .acquiring) }

    /// Raises the signal; a second call changes nothing.
    package func raise() {
        raised.store(true, ordering: .releasing)
        var one: UInt64 = 1
        if descriptor >= 0 { _ = write(descriptor, &one, 8) }
    }
}
