import System

/// The names of the entries in a ZIP archive.
enum ZIPName {
    /// The characters of the bytes from 0x80 in code page 437.
    private static let upperHalf = Array(
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}"
            .unicodeScalars)

    /// Returns a name as UTF-8: one that is not valid UTF-8 is in code page 437, as the format specifies.
    ///
    /// Valid UTF-8 is returned unchanged even if the entry is not marked as UTF-8, because archives of macOS and of
    /// older Linux programs lack the mark.
    static func decoded(_ name: PathBytes) -> PathBytes {
        guard String(validating: name.bytes, as: UTF8.self) == nil else { return name }
        var text = String.UnicodeScalarView()
        for byte in name.bytes {
            text.append(byte < 0x80 ? Unicode.Scalar(byte) : upperHalf[Int(byte - 0x80)])
        }
        return PathBytes(String(text).utf8)
    }
}
