@_exported public import JSON

/// The supported versions of the plugin protocol.
public enum ProtocolVersion {
    /// The version in requests.
    public static let current = 1
}
