import System

extension Action {
    /// A digest of the action: 64 bits in hexadecimal digits, the same in each run of the program.
    ///
    /// It is FNV-1a over a string of the values.
    package var digest: String {
        let text =
            switch work {
            case .use(let handler, let parameters):
                "use \(handler.name) \(handler.location.map { "\($0.bytes)" } ?? "") \(parameters.text)"
            case .exec(let arguments): "exec \(arguments)"
            case .shell(let line): "shell \(line)"
            }
        var sum: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in text.utf8 { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return String(sum, radix: 16)
    }
}

extension ParameterTemplate {
    /// A string of the values in a fixed order.
    fileprivate var text: String {
        switch self {
        case .value(let value): "\(value)"
        case .text(let template): "\(template)"
        case .array(let elements): "[\(elements.map(\.text).joined(separator: ","))]"
        case .object(let members):
            "{\(members.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value.text)" }.joined(separator: ","))}"
        }
    }
}
