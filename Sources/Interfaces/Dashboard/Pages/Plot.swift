import Glibc

/// A small plot of the last half hour, as SVG that scales to any width.
///
/// The labels are HTML beside the SVG, so that their size does not change with the width. A sentence describes the
/// plot for screen readers.
struct Plot {
    /// One data series.
    struct Series {
        enum Form { case bars, area, line }

        var label: String
        /// The class that determines the color in the style sheet.
        var kind: String
        var form: Form
        /// A value for each bucket; nil if there is none.
        var values: [Double?]
        /// The latest value, shown beside the label.
        var latest: String
    }

    var id: String
    var title: String
    /// The unit of the numbers: `a minute`.
    var unit: String
    var series: [Series]
    var axis: PlotAxis
    /// A sentence that describes the plot.
    var summary: String
    /// A note for each bucket, with its time; nil if there is none.
    var notes: [(timestamp: String, text: String)?]

    private static let (step, height) = (10.0, 100.0)

    private var width: Double { Self.step * Double(notes.count) }

    var figure: HTML {
        let legend: [HTML] = series.map { "<li class=\"\($0.kind)\"><span>\($0.label)</span> <b>\($0.latest)</b></li>" }
        let ticks: [HTML] = axis.labels.reversed().map { "<span>\($0)</span>" }
        let hasData = notes.contains { $0 != nil }
        let nothing: HTML = hasData ? "" : "<p class=\"nothing\">No activity in the last half hour.</p>"
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

    // MARK: Drawing

    private var drawn: [HTML] {
        // Bars are stacked.
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
                    // Even the smallest value is visible.
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
            // A single point is a line of length zero, drawn as a dot by its round ends.
            "M\(points(run))" + (run.count == 1 ? "h0.01" : "")
        }.joined()
        return "<path class=\"line \(series.kind)\" d=\"\(path)\"/>"
    }

    /// Returns the runs of consecutive values.
    private func runs(_ values: [Double?]) -> [[(Int, Double)]] {
        Array(values.enumerated()).split { $0.element == nil }
            .map { run in run.compactMap { index, value in value.map { (index, $0) } } }
    }

    private func points(_ run: [(Int, Double)]) -> String {
        run.map { "\(Self.text(Self.center($0.0))) \(Self.text(y($0.1)))" }.joined(separator: "L")
    }

    private static func center(_ index: Int) -> Double { (Double(index) + 0.5) * step }

    private func y(_ value: Double) -> Double { Self.height * (1 - axis.part(value)) }

    /// Rectangles that receive pointer events.
    private var hits: [HTML] {
        notes.enumerated().compactMap { index, note in
            guard let note else { return nil }
            let x = Self.text(Self.step * Double(index))
            return """
                <rect class="hit" x="\(x)" y="0" width="\(Self.text(Self.step))" height="\(Self.text(Self.height))" \
                data-at="\(note.timestamp)"><title>\(note.text)</title></rect>
                """
        }
    }

    /// Formats a number with at most one decimal.
    private static func text(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\((tenths % 10).magnitude)"
    }
}

/// The vertical axis of a plot.
struct PlotAxis {
    /// The labels from bottom to top, at equal distances.
    let labels: [String]
    /// Returns the height of a value, from 0 to 1.
    let part: (_ value: Double) -> Double

    /// Returns a linear axis from 0 to a round number, which includes the maximum, and at least the given range.
    static func even(for most: Double, least: Double) -> PlotAxis {
        let wanted = max(most, least)
        var unit = 1.0
        while wanted > unit * 10 { unit *= 10 }
        let top = [1, 2, 4, 6, 8, 10].map { $0 * unit }.first { $0 >= wanted } ?? unit * 10
        return PlotAxis(labels: [0, top / 2, top].map(short)) { min(1, max(0, $0 / top)) }
    }

    /// Returns a logarithmic axis from a millisecond, which includes this number of seconds.
    static func decades(for most: Double) -> PlotAxis {
        let labels = ["1 ms", "10 ms", "0.1 s", "1 s", "10 s", "100 s", "10³ s", "10⁴ s", "10⁵ s", "10⁶ s"]
        let count = most > 1 ? min(9, 3 + Int(log10(most).rounded(.up))) : 3
        return PlotAxis(labels: Array(labels[...count])) { min(1, log10(max($0, 0.001) * 1000) / Double(count)) }
    }

    /// Formats a value: `250`, `2k`, `1.5M`.
    private static func short(_ value: Double) -> String {
        if value >= 1e6 { return "\(Wording.rate(value / 1e6))M" }
        if value >= 1e4 { return "\(Wording.rate(value / 1e3))k" }
        return Wording.rate(value)
    }
}
