extension String {
    /// Creates a string with U+FFFD for each control character but the tab, which could control a terminal, and for
    /// what is not UTF-8.
    package init(cleaning bytes: some Collection<UInt8>) {
        self.init()
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            let isControl = scalar.properties.generalCategory == .control && scalar != "\t"
            unicodeScalars.append(isControl ? "\u{FFFD}" : scalar)
        }
    }
}
