import Storage

/// The rows that one turn of the engine has changed, in the order in which they are to be written, as bytes.
///
/// A row is the number of its statement, the values of its parameters, and an end. A value is a byte that says
/// what it is, and what that needs: an integer of 8 bytes, or the length of a text or blob in 4 and the text or blob.
/// All numbers are little-endian.
final class AheadRecord: RowSink {
    private enum Tag {
        static let null: UInt8 = 0
        static let integer: UInt8 = 1
        static let text: UInt8 = 2
        static let blob: UInt8 = 3
        static let end: UInt8 = 255
    }

    /// Begins with room for the header, which ``AheadLog`` fills in.
    private(set) var bytes: [UInt8]

    init(header: Int) {
        bytes = []
        bytes.reserveCapacity(4_096)
        bytes.append(contentsOf: repeatElement(0, count: header))
    }

    func add(_ statement: JournalStatement, _ bind: (AheadRecord) -> Void) {
        bytes.append(statement.rawValue)
        bind(self)
        bytes.append(Tag.end)
    }

    /// Fills it up to whole words of 8 bytes; no statement has the number 0.
    func pad() { bytes.append(contentsOf: repeatElement(0, count: -bytes.count & 7)) }

    func withHeader(_ body: (UnsafeMutableRawBufferPointer) -> Void) { bytes.withUnsafeMutableBytes(body) }

    // MARK: RowSink

    func bind(_ number: Int64) {
        bytes.append(Tag.integer)
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    func bindNull() { bytes.append(Tag.null) }

    func bind(text: UnsafeBufferPointer<UInt8>) { append(Tag.text, UnsafeRawBufferPointer(text)) }

    func bind(blob: UnsafeRawBufferPointer) { append(Tag.blob, blob) }

    private func append(_ tag: UInt8, _ content: UnsafeRawBufferPointer) {
        bytes.append(tag)
        withUnsafeBytes(of: UInt32(content.count).littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: content)
    }

    // MARK: Reading

    /// Binds and runs each row of a record's content.
    ///
    /// - Parameters:
    ///   - content: What follows the header.
    ///   - statements: What to run, by number.
    /// - Throws: What SQLite throws; ``UnreadableRow`` where no version of Alight has written what is there.
    static func replay(_ content: UnsafeRawBufferPointer, _ statements: [UInt8: SQLStatement]) throws {
        var place = 0
        func take(_ count: Int) throws -> UnsafeRawBufferPointer {
            guard count <= content.count - place else { throw UnreadableRow(table: "ahead") }
            defer { place += count }
            return UnsafeRawBufferPointer(rebasing: content[place..<(place + count)])
        }
        while place < content.count, content[place] != 0 {
            guard let statement = statements[content[place]] else { throw UnreadableRow(table: "ahead") }
            place += 1
            defer { statement.reset() }
            values: while true {
                switch try take(1)[0] {
                case Tag.null: statement.bindNull()
                case Tag.integer:
                    statement.bind(Int64(littleEndian: try take(8).loadUnaligned(as: Int64.self)))
                case Tag.text:
                    let count = Int(UInt32(littleEndian: try take(4).loadUnaligned(as: UInt32.self)))
                    try take(count).withMemoryRebound(to: UInt8.self) { statement.bind(text: $0) }
                case Tag.blob:
                    let count = Int(UInt32(littleEndian: try take(4).loadUnaligned(as: UInt32.self)))
                    statement.bind(blob: try take(count))
                case Tag.end: break values
                default: throw UnreadableRow(table: "ahead")
                }
            }
            while try statement.step() {}
        }
    }
}
