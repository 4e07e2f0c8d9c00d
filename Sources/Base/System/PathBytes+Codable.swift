extension PathBytes: Codable {
    /// Decodes a string, or an array of bytes for a path that is not UTF-8.
    ///
    /// - Parameter decoder: The decoder of one value.
    /// - Throws: An error if the value is neither.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            self.init(text)
        } else {
            self.init(try container.decode([UInt8].self))
        }
    }

    /// Encodes the path as a string if it is UTF-8, and otherwise as an array of bytes.
    ///
    /// - Parameter encoder: The encoder of one value.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let text { try container.encode(text) } else { try container.encode(bytes) }
    }
}
