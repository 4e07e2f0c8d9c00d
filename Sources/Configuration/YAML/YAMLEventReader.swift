import CLibYAML

/// One event of libyaml, copied out of its memory.
struct YAMLEvent {
    enum Kind {
        case streamStart, streamEnd, documentStart, documentEnd, sequenceStart, sequenceEnd, mappingStart, mappingEnd
        case scalar(String, YAMLNode.Style)
        case alias(String)
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
            context: state.context.map { String(cString: $0) },
            contextCharacter: Int(state.context_mark.index), character: Int(state.problem_mark.index))
    }

    private static func copy(of event: yaml_event_t) -> YAMLEvent {
        let start = Int(event.start_mark.index)
        let characters = start..<max(start, Int(event.end_mark.index))
        switch event.type {
        case YAML_STREAM_START_EVENT: return YAMLEvent(kind: .streamStart, characters: characters)
        case YAML_DOCUMENT_START_EVENT: return YAMLEvent(kind: .documentStart, characters: characters)
        case YAML_DOCUMENT_END_EVENT: return YAMLEvent(kind: .documentEnd, characters: characters)
        case YAML_SEQUENCE_END_EVENT: return YAMLEvent(kind: .sequenceEnd, characters: characters)
        case YAML_MAPPING_END_EVENT: return YAMLEvent(kind: .mappingEnd, characters: characters)
        case YAML_ALIAS_EVENT:
            return YAMLEvent(kind: .alias(text(event.data.alias.anchor) ?? ""), characters: characters)
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            let value = String(
                decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
            return YAMLEvent(
                kind: .scalar(value, style(scalar.style)), characters: characters, anchor: text(scalar.anchor),
                tag: text(scalar.tag))
        case YAML_SEQUENCE_START_EVENT:
            let sequence = event.data.sequence_start
            return YAMLEvent(
                kind: .sequenceStart, characters: characters, anchor: text(sequence.anchor), tag: text(sequence.tag),
                isFlow: sequence.style == YAML_FLOW_SEQUENCE_STYLE)
        case YAML_MAPPING_START_EVENT:
            let mapping = event.data.mapping_start
            return YAMLEvent(
                kind: .mappingStart, characters: characters, anchor: text(mapping.anchor), tag: text(mapping.tag),
                isFlow: mapping.style == YAML_FLOW_MAPPING_STYLE)
        // libyaml returns an empty event only after the end of the stream.
        default: return YAMLEvent(kind: .streamEnd, characters: characters)
        }
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
