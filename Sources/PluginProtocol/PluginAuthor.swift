/// The process that did what an event tells of, as it was when it did.
///
/// Members are null, and not left out, when the process had ended before they
/// could be read. A `…Base64` member is there only for bytes that are not UTF-8.
public struct PluginAuthor: Sendable, Hashable, Codable {
    public var pid: Int
    /// The program's name, of which the kernel keeps 15 bytes; of a script its own.
    public var comm: String?
    public var commBase64: String?
    /// The path of the program's file; of a script that of its interpreter.
    public var exe: String?
    public var exeBase64: String?
    /// The effective user.
    public var uid: Int?

    public init(pid: Int, comm: String?, exe: String?, uid: Int?) {
        self.pid = pid
        self.comm = comm
        self.exe = exe
        self.uid = uid
    }

    enum CodingKeys: String, CodingKey {
        case pid, comm, exe, uid
        case commBase64 = "comm_base64"
        case exeBase64 = "exe_base64"
    }

    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(pid, forKey: .pid)
        try members.encode(comm, forKey: .comm)
        try members.encodeIfPresent(commBase64, forKey: .commBase64)
        try members.encode(exe, forKey: .exe)
        try members.encodeIfPresent(exeBase64, forKey: .exeBase64)
        try members.encode(uid, forKey: .uid)
    }
}
