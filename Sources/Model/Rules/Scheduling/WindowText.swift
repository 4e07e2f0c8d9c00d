import System

/// Parses hours in the form of a rules file: `22:00-06:00`, `Mon-Fri 22:00-06:00`, `Sat,Sun 00:00-24:00`.
package enum WindowText {
    private static let days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    private static let form = "write hours such as '22:00-06:00', or with days 'Mon-Fri 22:00-06:00'"

    /// Parses one span.
    package static func parse(_ text: String) throws(Problem) -> RunWindow.Span {
        let shown = text.count > 40 ? text.prefix(40) + "…" : text[...]
        let words = text.split(separator: " ")
        guard let hours = words.last, words.count <= 2 else {
            throw Problem("invalid hours '\(shown)'", help: form)
        }
        let parts = hours.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.contains(":") }) else {
            throw Problem("invalid hours '\(shown)'", help: form)
        }
        let days = words.count == 2 ? try Self.days(words[0]) : Set(0..<7)
        let start = try minutes(parts[0])
        let end = try minutes(parts[1])
        guard start < 1440 else {
            throw Problem("'\(shown)' starts at the end of the day", help: "write '00:00' instead")
        }
        guard start != end else {
            throw Problem("'\(shown)' ends when it starts", help: "write '00:00-24:00' for the whole day")
        }
        return RunWindow.Span(days: days, start: start, end: end)
    }

    private static func minutes(_ text: Substring) throws(Problem) -> Int {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        let isDigits = parts.count == 2 && parts.allSatisfy { $0.utf8.allSatisfy(\.isDigit) }
        guard isDigits, (1...2).contains(parts[0].count), parts[1].count == 2, let hour = Int(parts[0]),
            let minute = Int(parts[1]), minute < 60, hour < 24 || hour == 24 && minute == 0
        else {
            throw Problem(
                "invalid time of day '\(text.prefix(40))'", help: "write hours and minutes from 00:00 to 24:00")
        }
        return hour * 60 + minute
    }

    /// Parses days: `Mon`, `Mon-Fri`, `Sat-Mon`, `Mon,Wed,Fri`.
    private static func days(_ text: Substring) throws(Problem) -> Set<Int> {
        var days: Set<Int> = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false)
            guard let first = ends.first, let last = ends.last, ends.count <= 2 else {
                throw Problem("invalid days '\(part.prefix(40))'", help: form)
            }
            var day = try Self.day(first)
            let end = try Self.day(last)
            days.insert(day)
            while day != end {
                day = (day + 1) % 7
                days.insert(day)
            }
        }
        return days
    }

    private static func day(_ word: Substring) throws(Problem) -> Int {
        let wanted = word.lowercased()
        let isWanted = { (name: String) in [name, String(name.prefix(3))].contains { $0.lowercased() == wanted } }
        if let day = days.firstIndex(where: isWanted) { return day }
        let near = Spelling.nearest(to: String(word), in: days + days.map { String($0.prefix(3)) })
        let list = "the days are Mon, Tue, Wed, Thu, Fri, Sat, Sun"
        throw Problem("invalid day '\(word.prefix(40))'", help: near.map { "write '\($0)'; \(list)" } ?? list)
    }
}
