import FileEvents
import Foundation
import System
import TestKit

/// A run of the recorder for one event, as recorded by itself.
struct Run {
    /// The content of the file when the run started; nil if it could not be read.
    typealias Content = String

    var rule: String
    var job: String
    /// In a batch, the attempt of the first event.
    var attempt: Int
    var isInterrupted: Bool
    var isBatch: Bool
    var kind: EventKind
    var path: PathBytes
    var from: PathBytes?
    var content: Content?
    /// The identity, size and time of the file according to the event.
    var metadata: String
    var process: Int32
    /// The life of the program in which the run started, from 1.
    var life: Int
    var begin: Int64
    var end: Int64?
    var status: Int32?
    /// The life in which the run finished.
    var endLife: Int?

    /// A one-line description of the run.
    var line: String {
        let result = status.map { "status \($0)" } ?? "not finished"
        let origin = from.map { " from \($0)" } ?? ""
        return """
            \(OperationLog.shown(begin)), life \(life): \(rule): \(kind.rawValue) \(path)\(origin), job \(job) \
            attempt \(attempt)\(isInterrupted ? " interrupted" : ""), \(content ?? "no content"): \(result)
            """
    }
}

/// The lines of the recorders, with marks of the driver at each start and kill.
struct RunLog {
    private(set) var runs: [Run] = []
    /// The number of lines that a kill left incomplete.
    private(set) var torn = 0
    private(set) var life = 0
    /// The time of the kill by life; absent for a life that ended without one.
    private(set) var kills: [Int: Int64] = [:]
    private(set) var starts: [Int: Int64] = [:]
    private var open: [Int32: Range<Int>] = [:]
    private let tree: PathBytes

    /// - Parameter tree: The directory that paths are shown relative to.
    init(tree: PathBytes) { self.tree = tree }

    /// Returns a mark of the driver.
    static func mark(_ word: String, life: Int) -> [UInt8] {
        Array("\n\(word)\t\(OperationLog.now())\t\(life)\t0\t\t\tend\n".utf8)
    }

    private struct Request: Decodable {
        struct Rule: Decodable { var name: String }
        struct Event: Decodable {
            var event: String
            var path: String
            var from: String?
            var id: String
            var size: Int64
            var mtime: String
            var job: String?
        }
        var id: String
        var attempt: Int
        var interrupted: Bool
        var rule: Rule
        var events: [Event]
    }

    mutating func take(_ line: ArraySlice<UInt8>) {
        if line.isEmpty { return }
        let fields = line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
        guard fields.count == 7, fields[6].elementsEqual("end".utf8), let time = Int64(text(fields[1])),
            let number = Int32(text(fields[2])), let status = Int32(text(fields[3]))
        else {
            torn += 1
            return
        }
        switch text(fields[0]) {
        case "start":
            life = Int(number)
            starts[life] = time
        case "kill": kills[life] = time
        case "begin": begin(time, number, text(fields[4]), fields[5])
        case "end":
            for index in open.removeValue(forKey: number) ?? 0..<0 {
                (runs[index].end, runs[index].status, runs[index].endLife) = (time, status, life)
            }
        default: torn += 1
        }
    }

    private mutating func begin(_ time: Int64, _ process: Int32, _ contents: String, _ line: ArraySlice<UInt8>) {
        guard let request = try? JSONDecoder().decode(Request.self, from: Data(line)) else {
            torn += 1
            return
        }
        let contents = contents.split(separator: ",").map(String.init)
        let start = runs.count
        for (event, content) in zip(request.events, contents) {
            runs.append(
                Run(
                    rule: request.rule.name, job: event.job ?? request.id, attempt: request.attempt,
                    isInterrupted: request.interrupted, isBatch: event.job != nil,
                    kind: EventKind(rawValue: event.event) ?? .arriving, path: relative(event.path),
                    from: event.from.map(relative), content: content == "-" ? nil : content,
                    metadata: "\(event.id) \(event.size) \(event.mtime)", process: process, life: life, begin: time))
        }
        open[process] = start..<runs.count
    }

    private func relative(_ path: String) -> PathBytes {
        let path = PathBytes(path)
        return PathBytes(path.relative(to: tree) ?? path.bytes[...])
    }

    private func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}
