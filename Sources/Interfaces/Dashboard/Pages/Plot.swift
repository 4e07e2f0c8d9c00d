import PluginProtocol

/// A small plot of the last half hour, as SVG that stretches to any width.
///
/// The words stand beside the SVG, in HTML: they keep their size when the plot
/// is stretched, and people who don't see it have a sentence in its place.
struct Plot {
    /// One thing that is drawn.
    struct Series {
        enum Form { case bars, area, line }

        var label: String
        /// Names the colour in the style sheet.
        var kind: String
        var form: Form
        /// A value for each bucket; nil where there is none.
        var values: [Double?]
        /// What stands beside the label.
        var latest: String
    }

    var id: String
    var title: String
    /// What the numbers count: `a minute`.
    var unit: String
    var series: [Series]
    var axis: PlotAxis
    /// What the plot says, in a sentence.
    var summary: String
    /// What each bucket says, with its moment; nil where it says nothing.
    var notes: [(moment: String, text: String)?]

    private static let (step, height) = (10.0, 100.0)

    private var width: Double { Self.step * Double(notes.count) }

    var figure: HTML {
        let legend: [HTML] = series.map {
            "<li class=\"\($0.kind)\"><span>\($0.label)</span> <b>\($0.latest)</b></li>"
        }
        let ticks: [HTML] = axis.labels.reversed().map { "<span>\($0)</span>" }
        let hasData = notes.contains { $0 != nil }
        let nothing: HTML = hasData ? "" : "<p class=\"nothing\">Nothing happened in this half hour.</p>"
        return """
            <figure class="plot card" id="plot-\(id)">
            <figcaption><h3>\(title) <small>\(unit)</small></h3><ul class="legend">\(legend)</ul></figcaption>
            <div class="graph"><div class="ticks" aria-hidden="true">\(ticks)</div><div class="area">
            <svg viewBox="0 0 \(Self.text(width)) \(Self.text(Self.height))" preserveAspectRatio="none" role="img" aria-label="\(summary)">
            \(grid)\(drawn)\(hits)
            </svg>\(nothing)</div></div>
            <p class="span" aria-hidden="true"><span>30 min ago</span><span>20</span><span>10</span><span>now</span></p>
            </figure>

            """
    }

    private var grid: [HTML] {
        let steps = axis.labels.count - 1
        return (0...steps).map { step in
            let y = Self.text(Self.height * Double(step) / Double(steps))
            return "<path class=\"grid\" d=\"M0 \(y)H\(Self.text(width))\"/>"
        }
    }

    // MARK: What is drawn

    private var drawn: [HTML] {
        // Bars stand on each other.
        var bases = [Double](repeating: 0, count: notes.count)
        return series.map { series in
            switch series.form {
            case .bars:
                var path = ""
                for (index, value) in series.values.enumerated() {
                    guard let value, value > 0 else { continue }
                    let (bottom, top) = (y(bases[index]), y(bases[index] + value))
                    bases[index] += value
                    let x = Self.step * Double(index) + 1
                    // What is there is seen, however little it is.
                    let height = max(bottom - top, 1.5)
                    path += "M\(Self.text(x)) \(Self.text(bottom))v-\(Self.text(height))h8v\(Self.text(height))z"
                }
                return "<path class=\"bars \(series.kind)\" d=\"\(path)\"/>"
            case .area:
                let fill = runs(series.values).map { run in
                    let line = points(run)
                    let (first, last) = (Self.center(run[0].0), Self.center(run[run.count - 1].0))
                    return
                        "M\(Self.text(first)) \(Self.text(Self.height))L\(line)L\(Self.text(last)) \(Self.text(Self.height))z"
                }.joined()
                return "<path class=\"fill \(series.kind)\" d=\"\(fill)\"/>\(line(series))"
            case .line: return line(series)
            }
        }
    }

    private func line(_ series: Series) -> HTML {
        let path = runs(series.values).map { run in
            // A point alone is a line of no length, which round ends make a dot.
            "M\(points(run))" + (run.count == 1 ? "h0.01" : "")
        }.joined()
        return "<path class=\"line \(series.kind)\" d=\"\(path)\"/>"
    }

    /// Values without a gap between them.
    private func runs(_ values: [Double?]) -> [[(Int, Double)]] {
        var runs: [[(Int, Double)]] = [[]]
        for (index, value) in values.enumerated() {
            if let value {
                runs[runs.count - 1].append((index, value))
            } else if runs.last?.isEmpty == false {
                runs.append([])
            }
        }
        return runs.filter { !$0.isEmpty }
    }

    private func points(_ run: [(Int, Double)]) -> String {
        run.map { "\(Self.text(Self.center($0.0))) \(Self.text(y($0.1)))" }.joined(separator: "L")
    }

    private static func center(_ index: Int) -> Double { (Double(index) + 0.5) * step }

    private func y(_ value: Double) -> Double { Self.height * (1 - axis.part(of: value)) }

    /// Places that can be pointed at.
    private var hits: [HTML] {
        notes.enumerated().compactMap { index, note in
            guard let note else { return nil }
            let x = Self.text(Self.step * Double(index))
            return """
                <rect class="hit" x="\(x)" y="0" width="\(Self.text(Self.step))" height="\(Self.text(Self.height))" \
                data-at="\(note.moment)"><title>\(note.text)</title></rect>
                """
        }
    }

    /// A number with one decimal at most.
    private static func text(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\((tenths % 10).magnitude)"
    }
}

/// From which number to which a plot goes up.
enum PlotAxis {
    /// From 0 to a round number.
    case even(top: Double)
    /// From a millisecond, each mark ten times the one below.
    case decades(Int)

    /// An even axis with room for the number, and for the least that is worth a plot.
    static func even(for most: Double, least: Double) -> PlotAxis {
        let wanted = max(most, least)
        var unit = 1.0
        while wanted > unit * 10 { unit *= 10 }
        let top = [1, 2, 4, 6, 8, 10].map { $0 * unit }.first { $0 >= wanted } ?? unit * 10
        return .even(top: top)
    }

    /// A logarithmic axis with room for so many seconds.
    static func decades(for most: Double) -> PlotAxis {
        var decades = 3
        var top = 1.0
        while most > top, decades < 9 {
            top *= 10
            decades += 1
        }
        return .decades(decades)
    }

    /// The marks from the bottom to the top, all equally far from each other.
    var labels: [String] {
        switch self {
        case .even(let top): [0, top / 2, top].map(Self.short)
        case .decades(let count):
            (0...count).map {
                ["1 ms", "10 ms", "0.1 s", "1 s", "10 s", "100 s", "10³ s", "10⁴ s", "10⁵ s", "10⁶ s"][$0]
            }
        }
    }

    /// How far up the number is, from 0 to 1.
    func part(of value: Double) -> Double {
        switch self {
        case .even(let top): return min(1, max(0, value / top))
        case .decades(let count):
            var (rest, part) = (max(value, 0.001) / 0.001, 0.0)
            while rest >= 10, part < Double(count) {
                rest /= 10
                part += 1
            }
            // Between the decades the straight line from 1 to 10 is replaced by one bend: near enough for a plot.
            part += rest < 3.162 ? (rest - 1) / 2.162 / 2 : 0.5 + (rest - 3.162) / 6.838 / 2
            return min(1, part / Double(count))
        }
    }

    /// `250`, `2k`, `1.5M`.
    private static func short(_ value: Double) -> String {
        if value >= 1e6 { return "\(Wording.rate(value / 1e6))M" }
        if value >= 1e4 { return "\(Wording.rate(value / 1e3))k" }
        return Wording.rate(value)
    }
}
