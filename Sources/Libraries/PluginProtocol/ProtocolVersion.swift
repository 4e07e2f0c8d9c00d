/// The versions of the plugin protocol that this program speaks.
public enum ProtocolVersion {
    /// The version in requests.
    public static let current = 1
}
