// A file name on Linux is bytes. These are exact also where the readable members hold U+FFFD.
extension PluginEvent {
    /// Where the file is.
    public var pathBytes: [UInt8] { Base64.decoded(pathBase64) ?? Array(path.utf8) }

    /// The watched folder.
    public var rootBytes: [UInt8] { Base64.decoded(rootBase64) ?? Array(root.utf8) }

    /// The path below the watched folder.
    public var relativeBytes: [UInt8] { Base64.decoded(relativeBase64) ?? Array(relative.utf8) }

    /// Where a moved file was before.
    public var fromBytes: [UInt8]? { Base64.decoded(fromBase64) ?? from.map { Array($0.utf8) } }
}

extension PluginPath {
    public init(_ text: String) { self.init(bytes: Array(text.utf8)) }
}

extension PluginRequest {
    /// The parameters for an event: its own in a batch, else those of the request.
    public func parameters(for event: PluginEvent) -> [String: JSONValue] { (event.with ?? with).object ?? [:] }

    /// A parameter that is a path, made absolute: a relative one is meant from the folder of the rules file.
    ///
    /// - Parameters:
    ///   - key: The name of the parameter.
    ///   - event: The event that it is for; nil for the first.
    /// - Returns: The bytes, a slash at the end included; nil when the rule doesn't give it.
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
