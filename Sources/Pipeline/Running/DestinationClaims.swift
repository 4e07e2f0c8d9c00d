import ActionAPI
import FileEvents
import Jobs
import Records
import Rules
import Synchronization
import System

/// The outputs that running actions write, and those recorded in the journal.
final class DestinationClaims: OutputClaims {
    private struct Claims {
        var holders: [PathBytes: (job: JobID, source: PathBytes)] = [:]
        var outputs: [JobID: [PathBytes]] = [:]
    }

    private let claims = Mutex(Claims())
    private let store: any Journal
    private let host: Host

    init(_ store: any Journal, _ host: Host) { (self.store, self.host) = (store, host) }

    func claim(_ output: PathBytes, for job: Job, replacing replaceable: ReplaceableOutputs) -> ClaimRefusal? {
        claims.withLock { claims in
            if let holder = claims.holders[output], holder.job != job.id {
                // Two actions never write one path at a time.
                return ClaimRefusal(source: holder.source, isRunning: true)
            }
            if let refusal = refusal(output, job, replaceable) { return refusal }
            claims.holders[output] = (job.id, job.event.path)
            claims.outputs[job.id, default: []].append(output)
            return nil
        }
    }

    private func refusal(_ output: PathBytes, _ job: Job, _ replaceable: ReplaceableOutputs) -> ClaimRefusal? {
        if replaceable.isSuperset(of: [.unknown, .others]) { return nil }
        if case .absent = host.fileSystem.stat(output) { return nil }
        guard let maker = store.maker(of: output) else {
            return replaceable.contains(.unknown) ? nil : ClaimRefusal(source: nil)
        }
        let isOwn = maker.rule == job.rule && job.event.paths.contains(maker.source)
        return isOwn || replaceable.contains(.others) ? nil : ClaimRefusal(source: maker.source)
    }

    func release(of job: Job, areMade: Bool) {
        let outputs = claims.withLock { $0.outputs.removeValue(forKey: job.id) ?? [] }
        guard !outputs.isEmpty else { return }
        if areMade {
            let made = outputs.filter { if case .absent = host.fileSystem.stat($0) { false } else { true } }
            store.record(made, of: OutputMaker(rule: job.rule, source: job.event.path))
        }
        // Only now, so that the next job that claims them sees the record.
        claims.withLock { claims in for output in outputs { claims.holders[output] = nil } }
    }
}
