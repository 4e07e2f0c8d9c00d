import Engine
import FileEvents
import Reconciling
import Rules
import Testing

struct WithholdingTests {
    private static func event(_ path: PathBytes) -> FileEvent {
        var snapshot = Snapshot.unseen
        snapshot.type = .file
        return FileEvent(
            kind: .created, path: path, root: "/in", snapshot: snapshot, origin: .live,
            time: Timestamp(seconds: 0, nanoseconds: 0))
    }

    @Test func `a file is looked at once for all rules of a turn, and what was kept is noted`() {
        let pdf = Condition.mime([.init(type: "application", subtype: "pdf")])
        let image = Condition.mime([.init(type: "image", subtype: nil)])
        let rules = Ruleset([
            .sample("pdf", ["/in/*"]).with {
                $0.condition = pdf
                $0.isLast = true
            },
            .sample("image", ["/in/*"]).with {
                $0.condition = image
                $0.isLast = true
            },
            .sample("one", ["/in/*"]), .sample("two", ["/in/*"]),
        ])
        var looks: [PathBytes] = []
        var withholding = Withholding(rules) { event in
            looks.append(event.path)
            return .type(event.path == "/in/a" ? "image/png" : "text/plain")
        }
        let told = ["/in/a", "/in/b"].map { path in
            (0..<4).map { withholding.told(Self.event(PathBytes(path)), to: $0) != nil }
        }
        #expect(told == [[true, true, false, false], [true, true, true, true]])
        #expect(looks == ["/in/a", "/in/b"])
        let entries = ["image", "one", "two"].flatMap { view in
            ["/in/a", "/in/b"].map {
                LedgerEntry(view: view, path: PathBytes($0), snapshot: Self.event(PathBytes($0)).snapshot)
            }
        }
        let noted = withholding.noting(in: entries + [LedgerEntry(view: "one", path: "/in/c", snapshot: nil)])
        #expect(noted.map { $0.snapshot?.standing } == [.named, .named, .withheld, .named, .withheld, .named, nil])
    }
}
