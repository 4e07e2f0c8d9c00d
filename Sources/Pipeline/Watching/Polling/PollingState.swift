import System

/// The polled directories of a watcher.
struct PollingState {
    /// The contents of each polled directory at the last poll.
    var contents: [DirectoryTree.ID: PolledDirectory] = [:]
    var schedule = PollSchedule()
    /// Whether the schedule has its turn before the scan of a root.
    var isNext = false
    /// Polled directories with a reported change, to be polled before they are due.
    var urgent: Set<DirectoryTree.ID> = []
    var devices = DeviceTable()
    /// The paths that were reported as polled.
    var reported: Set<PathBytes> = []
}

/// The devices of the directories as small numbers, and whether the kernel reports every change on them.
struct DeviceTable {
    private var numbers: [UInt64: UInt16] = [:]
    private var names: [UInt16: String?] = [:]

    /// Forgets the file system types but not the numbers, since a device may be reused after an unmount.
    mutating func forgetTypes() { names = [:] }

    /// Returns the number of a device; 0 when there are too many devices.
    mutating func number(of device: UInt64) -> UInt16 {
        if let number = numbers[device] { return number }
        guard numbers.count < Int(UInt16.max) - 1 else { return 0 }
        let number = UInt16(numbers.count + 1)
        numbers[device] = number
        return number
    }

    /// Returns the name of the file system type if it has to be polled; determined once per device.
    mutating func unreliable(_ number: UInt16, _ reader: DirectoryReader) -> String? {
        if number != 0, let known = names[number] { return known }
        let name = reader.unreliableFileSystem
        names[number] = .some(name)
        return name
    }

    func isUnreliable(_ number: UInt16) -> Bool { (names[number] ?? nil) != nil }
}
