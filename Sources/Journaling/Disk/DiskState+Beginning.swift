import FileEvents
import Rules
import Storage

extension DiskState {
    /// Takes in the rules that run, and gives them the jobs that are theirs.
    mutating func begin(_ records: [RuleRecord], isWatching: Bool, at now: Timestamp) -> [String: RuleStart] {
        // In a run that goes on with other rules, all is known up to the present.
        let (starts, renamed) = rules.begin(
            records, now: isWatching ? now.columnValue : nil, kept: self.isWatching ? now.columnValue : kept)
        for (from, to) in renamed {
            queue.rename(from, to: to)
            queue.files.rename(from, to: to)
        }
        mounts.look()
        mapDevices()
        queue.setAside(except: Set(records.map(\.name)))
        queue.files.rules = rules.ids
        self.isWatching = isWatching
        return starts
    }

    /// Takes in through which mount points files are seen.
    mutating func note(_ mounts: [MountRecord]) {
        self.mounts.note(mounts)
        mapDevices()
    }

    /// Lets files be known by the numbers that their devices have now.
    private mutating func mapDevices() {
        let devices = mounts.devices
        guard !devices.isEmpty else { return }
        queue.files.devices = devices
        queue.mapEvents { event in
            event.map(devices)
        }
    }
}
