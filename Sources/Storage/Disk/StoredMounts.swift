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
            let identity = FileIdentity(
                device: row.integer(1), inode: UInt64(bitPattern: row.integer(2)), birth: row.integer(3))
            return MountRecord(point: PathBytes(row.blob(0)), identity: identity)
        }
    }

    var hasChanges: Bool { isChanged || !devices.isEmpty }

    /// Finds the devices whose number has changed: the directory mounted at a point is the same.
    mutating func findDevices() {
        for (index, record) in records.enumerated() {
            guard let present = KernelFileSystem().identity(of: record.point), present.inode == record.identity.inode,
                present.birth == record.identity.birth, present != record.identity
            else { continue }
            devices[record.identity.device] = present.device
            records[index].identity = present
        }
    }

    /// Records the current mounts; a directory that is mounted again from another device is recognized.
    mutating func record(_ mounts: [MountRecord]) {
        let mounts = mounts.sorted { $0.point < $1.point }
        guard mounts != records else { return }
        for mount in mounts {
            let known = records.first { $0.point == mount.point }?.identity
            guard let known, known != mount.identity, known.inode == mount.identity.inode,
                known.birth == mount.identity.birth
            else { continue }
            devices[known.device] = mount.identity.device
        }
        records = mounts
        isChanged = true
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
                $0.bind(blob: record.point.bytes).bind(record.identity.device)
                    .bind(Int64(bitPattern: record.identity.inode)).bind(record.identity.birth)
            }
        }
    }

    mutating func markCommitted() { (isChanged, devices) = (false, [:]) }
}

extension FileEvent {
    /// Replaces the devices of its files; returns false if they are unchanged.
    @discardableResult
    mutating func map(_ devices: [Int64: Int64]) -> Bool {
        let isMapped = snapshot.identity.map(devices)
        return before?.identity.map(devices) ?? false || isMapped
    }
}

extension FileIdentity {
    /// Replaces the device; returns false if it is unchanged.
    @discardableResult
    mutating func map(_ devices: [Int64: Int64]) -> Bool {
        guard let device = devices[device] else { return false }
        self = FileIdentity(device: device, inode: inode, birth: birth)
        return true
    }
}
