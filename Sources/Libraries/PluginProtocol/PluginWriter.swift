package import JSON

/// The process that caused an event, with its attributes at that time.
///
/// Members are null, not omitted, if the process had exited before they could be
/// read. A `…Base64` member is present only for bytes that are not UTF-8.
public struct PluginWriter: Sendable, Hashable {
    public var pid: Int
    /// The program's name, of which the kernel stores 15 bytes; for a script, the script's name.
    public var comm: String?
    public var commBase64: String?
    /// The path of the executable; for a script, that of its interpreter.
    public var exe: String?
    public var exeBase64: String?
    /// The effective user.
    public var uid: Int?

    public init(pid: Int, comm: String?, exe: String?, uid: Int?) {
        (self.pid, self.comm, self.exe, self.uid) = (pid, comm, exe, uid)
    }
}

extension PluginWriter: JSONRecord {
    package static var empty: PluginWriter { PluginWriter(pid: 0, comm: nil, exe: nil, uid: nil) }

    package mutating func code(with json: inout JSONCoder) {
        json.member(nullable: "comm", &comm)
        json.member("comm_base64", &commBase64)
        json.member(nullable: "exe", &exe)
        json.member("exe_base64", &exeBase64)
        json.member("pid", &pid)
        json.member(nullable: "uid", &uid)
    }
}
