/// Where the values of a row go, one parameter after the other: a statement, or the log ahead of the database.
package protocol RowSink: AnyObject {
    func bind(_ number: Int64)
    func bindNull()
    /// Binds the UTF-8 of a text.
    func bind(text: UnsafeBufferPointer<UInt8>)
    func bind(blob: UnsafeRawBufferPointer)
}

extension RowSink {
    package func bind(_ number: Int64?) {
        if let number { bind(number) } else { bindNull() }
    }

    package func bind(_ flag: Bool) { bind(flag ? 1 : 0) }

    package func bind(_ text: String) {
        var text = text
        text.withUTF8 { bind(text: $0) }
    }

    package func bind(_ text: String?) {
        if let text { bind(text) } else { bindNull() }
    }

    /// Binds the UTF-8 of a text.
    package func bind(utf8: [UInt8]?) {
        if let utf8 { utf8.withUnsafeBufferPointer { bind(text: $0) } } else { bindNull() }
    }

    package func bind(blob: [UInt8]?) {
        if let blob { blob.withUnsafeBytes { bind(blob: $0) } } else { bindNull() }
    }
}
