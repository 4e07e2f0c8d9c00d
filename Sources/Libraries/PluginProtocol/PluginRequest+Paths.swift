public import JSON

// A file name on Linux is bytes. These are exact even where the readable members contain U+FFFD.
extension PluginEvent {
    /// The path of the file.
    public var pathBytes: [UInt8] { Base64.decoded(pathBase64) ?? Array(path.utf8) }

    /// The watched directory.
    public var rootBytes: [UInt8] { Base64.decoded(rootBase64) ?? Array(root.utf8) }

    /// The path below the watched directory.
    public var relativeBytes: [UInt8] { Base64.decoded(relativeBase64) ?? Array(relative.utf8) }

    /// The previous path of a moved file.
    public var fromBytes: [UInt8]? { Base64.decoded(fromBase64) ?? from.map { Array($0.utf8) } }
}

extension PluginPath {
    public init(_ text: String) { self.init(bytes: Array(text.utf8)) }
}

extension PluginRequest {
    /// Returns the parameters for an event: its own in a batch, otherwise those of the request.
    public func parameters(for event: PluginEvent) -> [String: JSONValue] { (event.with ?? with).object ?? [:] }

    /// Returns a parameter that is a path, as an absolute path: it is relative to the directory of the rules file.
    ///
    /// - Parameters:
    ///   - key: The name of the parameter.
    ///   - event: The event; nil for the first.
    /// - Returns: The bytes, including a trailing slash; nil if the rule doesn't set it.
    public func pathBytes(_ key: String, for event: PluginEvent? = nil) -> [UInt8]? {
        let values = (event ?? events.first).map { parameters(for: $0) } ?? with.object ?? [:]
        guard let path = values[key]?.bytes, !path.isEmpty else { return nil }
        let slash = UInt8(ascii: "/")
        if path.first == slash { return path }
        let file = Array(rule.file.utf8)
        let folder = file.lastIndex(of: slash).map { file[..<$0] } ?? []
        return folder + [slash] + path
    }
}
