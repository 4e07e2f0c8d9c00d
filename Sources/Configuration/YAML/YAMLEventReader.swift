import CLibYAML

/// One event of libyaml, copied out of its memory.
struct YAMLEvent {
    enum Kind {
        case documentStart, sequenceStart, sequenceEnd, mappingStart, mappingEnd
        case scalar(String, YAMLNode.Style)
        case alias(String)
        /// The start or end of the stream, or the end of a document.
        case other
    }

    var kind: Kind
    /// The range in characters, counted from 0.
    var characters: Range<Int>
    var anchor: String?
    var tag: String?
    var isFlow = false
}

/// An error of libyaml; characters count from 0.
struct YAMLSyntaxError: Error {
    var problem: String
    /// The construct that libyaml was reading.
    var context: String?
    var contextCharacter: Int
    var character: Int
}

/// Reads libyaml's events from a text, one at a time.
///
/// The parser stores pointers into itself and into the text. It is therefore allocated at a fixed address, and the
/// text must not move during the lifetime of the reader.
struct YAMLEventReader: ~Copyable {
    private let parser: UnsafeMutablePointer<yaml_parser_t>

    /// - Returns: nil if there is not enough memory for a parser.
    init?(_ bytes: UnsafeBufferPointer<UInt8>) {
        let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
        guard yaml_parser_initialize(parser) == 1 else {
            parser.deallocate()
            return nil
        }
        self.parser = parser
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        yaml_parser_set_input_string(parser, bytes.baseAddress, bytes.count)
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
    }

    mutating func next() throws(YAMLSyntaxError) -> YAMLEvent {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) == 1 else { throw error() }
        defer { yaml_event_delete(&event) }
        return Self.copy(of: event)
    }

    private func error() -> YAMLSyntaxError {
        let state = parser.pointee
        return YAMLSyntaxError(
            problem: state.problem.map { String(cString: $0) } ?? "out of memory",
            context: state.context.map { String(cString: $0) }, contextCharacter: Int(state.context_mark.index),
            character: Int(state.problem_mark.index))
    }

    private static func copy(of event: yaml_event_t) -> YAMLEvent {
        let start = Int(event.start_mark.index)
        var copy = YAMLEvent(kind: .other, characters: start..<max(start, Int(event.end_mark.index)))
        switch event.type {
        case YAML_DOCUMENT_START_EVENT: copy.kind = .documentStart
        case YAML_SEQUENCE_END_EVENT: copy.kind = .sequenceEnd
        case YAML_MAPPING_END_EVENT: copy.kind = .mappingEnd
        case YAML_ALIAS_EVENT: copy.kind = .alias(text(event.data.alias.anchor) ?? "")
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            let value = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            copy.kind = .scalar(String(decoding: value, as: UTF8.self), style(scalar.style))
            (copy.anchor, copy.tag) = (text(scalar.anchor), text(scalar.tag))
        case YAML_SEQUENCE_START_EVENT:
            let sequence = event.data.sequence_start
            copy.kind = .sequenceStart
            (copy.anchor, copy.tag) = (text(sequence.anchor), text(sequence.tag))
            copy.isFlow = sequence.style == YAML_FLOW_SEQUENCE_STYLE
        case YAML_MAPPING_START_EVENT:
            let mapping = event.data.mapping_start
            copy.kind = .mappingStart
            (copy.anchor, copy.tag) = (text(mapping.anchor), text(mapping.tag))
            copy.isFlow = mapping.style == YAML_FLOW_MAPPING_STYLE
        // libyaml also returns an empty event, but only after the end of the stream.
        default: break
        }
        return copy
    }

    private static func text(_ bytes: UnsafeMutablePointer<yaml_char_t>?) -> String? {
        bytes.map { String(cString: $0) }
    }

    private static func style(_ style: yaml_scalar_style_t) -> YAMLNode.Style {
        switch style {
        case YAML_SINGLE_QUOTED_SCALAR_STYLE: .singleQuoted
        case YAML_DOUBLE_QUOTED_SCALAR_STYLE: .doubleQuoted
        case YAML_LITERAL_SCALAR_STYLE, YAML_FOLDED_SCALAR_STYLE: .block
        default: .plain
        }
    }
}
