import FileEvents
import GRDB
import Records
import System

/// The mount points of watched files, which identify a device after its number has changed.
struct StoredMounts {
    private(set) var records: [MountRecord]
    private var isChanged = false
    /// The current device numbers, keyed by those in rows of earlier runs.
    private(set) var devices: [Int64: Int64] = [:]

    init(_ database: Database) throws {
        let sql = "SELECT point, device, inode, btime FROM mounts ORDER BY point"
        records = try SQLStatement(sql, in: database).rows { row in
            let identity = FileIdentity(device: row.integer(1), inode: row.integer(2), birth: row.integer(3))
            return MountRecord(point: PathBytes(row.blob(0)), identity: identity)
        }
    }

    var hasChanges: Bool { isChanged || !devices.isEmpty }

    /// Finds the devices whose number has changed: the directory mounted at a point is the same.
    mutating func findDevices() {
        for (index, record) in records.enumerated() {
            guard let present = KernelFileSystem().identity(of: record.point), note(present, of: record) else {
                continue
            }
            records[index].identity = present
        }
    }

    /// Records the current mounts; a directory that is mounted again from another device is recognized.
    mutating func record(_ mounts: [MountRecord]) {
        let mounts = mounts.sorted { $0.point < $1.point }
        guard mounts != records else { return }
        for mount in mounts {
            if let known = records.first(where: { $0.point == mount.point }) { note(mount.identity, of: known) }
        }
        records = mounts
        isChanged = true
    }

    /// Records the new device of a directory; returns false if it has none, or is another directory.
    @discardableResult
    private mutating func note(_ present: FileIdentity, of known: MountRecord) -> Bool {
        let former = known.identity
        guard present != former, (present.inode, present.birth) == (former.inode, former.birth) else { return false }
        devices[former.device] = present.device
        return true
    }

    /// Writes the changes; rows of earlier runs get the current device numbers.
    func write(_ database: Database, run: Int64) throws {
        if !devices.isEmpty {
            // A single statement, since numbers may have been swapped.
            let cases = devices.map { "WHEN \($0.key) THEN \($0.value)" }.joined(separator: " ")
            let old = devices.keys.map(String.init).joined(separator: ", ")
            try database.execute(
                sql: "UPDATE ledger SET device = CASE device \(cases) END WHERE run <> ? AND device IN (\(old))",
                arguments: [run])
        }
        try database.execute(sql: "DELETE FROM mounts")
        let insert = try SQLStatement(
            "INSERT INTO mounts (point, device, inode, btime) VALUES (?, ?, ?, ?)", in: database)
        for record in records {
            try insert.run {
                $0.bind(blob: record.point.bytes).bind(record.identity.device).bind(record.identity.inode)
                    .bind(record.identity.birth)
            }
        }
    }

    mutating func markCommitted() { (isChanged, devices) = (false, [:]) }
}

extension FileEvent {
    /// Replaces the devices of its files.
    mutating func map(_ devices: [Int64: Int64]) {
        snapshot.identity.map(devices)
        before?.identity.map(devices)
    }
}

extension FileIdentity {
    /// Replaces the device.
    mutating func map(_ devices: [Int64: Int64]) { if let device = devices[device] { self.device = device } }
}
