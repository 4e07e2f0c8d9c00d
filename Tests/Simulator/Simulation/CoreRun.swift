package import Reconciling
package import System

/// The code that runs in a simulated world.
package enum SimulatedCore: Equatable {
    /// The engine, with its ledger in SQLite.
    case engine
    /// The reconciler of `Sources/Pipeline`, with its ledger in memory.
    case ledger(omitting: CoreRule? = nil)
}

/// A core that runs in a simulated world, step by step.
package protocol CoreRun: AnyObject {
    var world: World { get }
    var rules: [SimulatedRule] { get }
    /// The first error; nil if there is none.
    var fault: String? { get }
    /// Everything that actions received and did.
    var history: [String] { get }
    /// The stage of each started action, and its path.
    var actions: [(stage: ActionStage, path: PathBytes?)] { get }
    /// Performs one step. Returns false if it is not applicable.
    @discardableResult func take(_ step: Step) -> Bool
    /// Performs the steps and all remaining work, and checks the result.
    func run(_ steps: [Step]) -> String?
    var trace: (@Sendable (String) -> Void)? { get set }
    /// Checks the invariant between two steps.
    func checkInvariant()
}

package enum ActionStage { case leased, begun, done }
