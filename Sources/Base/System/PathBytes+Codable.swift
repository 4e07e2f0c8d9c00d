extension PathBytes: Codable {
    /// Reads a text, or the bytes of a path that is none.
    ///
    /// - Parameter decoder: Holds one value.
    /// - Throws: When the value is neither.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            self.init(text)
        } else {
            self.init(try container.decode([UInt8].self))
        }
    }

    /// Writes the path as text if it is UTF-8, else as its bytes.
    ///
    /// - Parameter encoder: Gets one value.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let text { try container.encode(text) } else { try container.encode(bytes) }
    }
}
