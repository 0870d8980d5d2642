internal import Foundation

/// A picture of a report, as SVG: a bar for each ratio, with its target, and a line for all that grows.
struct Chart {
    private let report: Report
    private var bars: [Row] { report.findings.rows.filter(\.unit.isRatio) }
    private var lines: [Series] { report.findings.series.filter { $0.points.count > 1 } }

    init(_ report: Report) { self.report = report }

    private static let width = 960.0, margin = 20.0
    private static let barHeight = 24.0, barLeft = 330.0, barWidth = 510.0
    private static let lineHeight = 220.0, lineColumns = 3
    private static let met = "#2b8a3e", missed = "#d9480f", neutral = "#868e96", ink = "#212529", pale = "#dee2e6"

    var svg: String {
        let top = Self.margin + 40
        let barsBottom = top + Self.barHeight * Double(bars.count) + (bars.isEmpty ? 0 : 60)
        let lineRows = (lines.count + Self.lineColumns - 1) / Self.lineColumns
        let height = barsBottom + Self.lineHeight * Double(lineRows) + Self.margin
        let parts = [
            """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(n(Self.width))" height="\(n(height))" \
            viewBox="0 0 \(n(Self.width)) \(n(height))" font-family="sans-serif" font-size="12" fill="\(Self.ink)">
            <rect width="100%" height="100%" fill="white"/>
            """,
            text(Self.margin, Self.margin + 6, "Coffer: \(report.machine.lines.first ?? "")", size: 11),
            bars.isEmpty ? "" : barChart(top),
            lines.enumerated().map { index, series in
                let (row, column) = index.quotientAndRemainder(dividingBy: Self.lineColumns)
                let width = (Self.width - 2 * Self.margin) / Double(Self.lineColumns)
                return lineChart(
                    series, left: Self.margin + width * Double(column),
                    top: barsBottom + Self.lineHeight * Double(row), width: width)
            }.joined(separator: "\n"),
            "</svg>\n",
        ]
        return parts.filter { !$0.isEmpty }.joined(separator: "\n")
    }

    // MARK: Bars

    private func barChart(_ top: Double) -> String {
        let greatest = bars.map { max($0.value, $0.target.number, $0.spread[1]) }.max() ?? 1
        let scale = Self.barWidth / max(1, greatest.rounded(.up))
        let bottom = top + Self.barHeight * Double(bars.count)
        let grid = (0...Int(max(1, greatest.rounded(.up)))).map { value in
            let x = Self.barLeft + Double(value) * scale
            return line(x, top, x, bottom, Self.pale) + text(x, bottom + 14, "\(value)", anchor: "middle", size: 10)
        }
        let bars = bars.enumerated().map { index, row in
            let y = top + Self.barHeight * Double(index)
            let middle = y + Self.barHeight / 2
            let targetX = Self.barLeft + row.target.number * scale
            let color =
                switch row.verdict {
                case .met: Self.met
                case .missed: Self.missed
                case .notMeaningful: Self.neutral
                }
            let end = Self.barLeft + max(row.value, row.spread[1], row.target.number) * scale
            return [
                text(Self.barLeft - 8, middle + 4, row.name, anchor: "end"),
                """
                <rect x="\(n(Self.barLeft))" y="\(n(y + 5))" width="\(n(row.value * scale))" \
                height="\(n(Self.barHeight - 10))" fill="\(color)"/>
                """,
                line(
                    Self.barLeft + row.spread[0] * scale, middle, Self.barLeft + row.spread[1] * scale, middle, Self.ink
                ),
                line(targetX, y + 2, targetX, y + Self.barHeight - 2, Self.ink, width: 2.5),
                text(end + 6, middle + 4, "\(row.value.short) \(row.unit.rawValue)", size: 10),
            ].joined(separator: "\n")
        }
        let legend = text(
            Self.barLeft, bottom + 32,
            "bar: median; thin line: all rounds; thick mark: target, at least for × and at most for the others; × is of the work by hand",
            anchor: "start", size: 10)
        return (grid + bars + [legend]).joined(separator: "\n")
    }

    // MARK: Lines

    private func lineChart(_ series: Series, left: Double, top: Double, width: Double) -> String {
        let (plotLeft, plotTop) = (left + 42, top + 40)
        let (plotWidth, plotHeight) = (width - 70, Self.lineHeight - 90)
        let points = series.points.filter { $0.at >= series.growthFrom }
        let greatest = points.map { $0.spread[1] }.max() ?? 1
        let (first, last) = (log(Double(points.first?.at ?? 1)), log(Double(points.last?.at ?? 1)))
        func x(_ point: Series.Point) -> Double {
            plotLeft + plotWidth * (log(Double(point.at)) - first) / max(last - first, .leastNormalMagnitude)
        }
        func y(_ value: Double) -> Double { plotTop + plotHeight * (1 - value / max(greatest, .leastNormalMagnitude)) }
        let color = series.verdict == .met ? Self.met : Self.missed
        let corners = points.map { "\(n(x($0))),\(n(y($0.value)))" }.joined(separator: " ")
        let bottom = plotTop + plotHeight
        let marks = points.map { point in
            [
                line(x(point), y(point.spread[0]), x(point), y(point.spread[1]), Self.ink),
                "<circle cx=\"\(n(x(point)))\" cy=\"\(n(y(point.value)))\" r=\"3\" fill=\"\(color)\"/>",
                text(x(point), bottom + 14, point.at.short, anchor: "middle", size: 10),
            ].joined(separator: "\n")
        }
        return
            ([
                text(left, top + 14, series.name),
                text(
                    left, top + 28, "\(series.unit), with \(series.axis.rawValue); growth \(series.growth.short) ×",
                    size: 10),
                line(plotLeft, bottom, plotLeft + plotWidth, bottom, Self.pale),
                line(plotLeft, plotTop, plotLeft, bottom, Self.pale),
                text(plotLeft - 4, plotTop + 4, greatest.short, anchor: "end", size: 10),
                text(plotLeft - 4, bottom, "0", anchor: "end", size: 10),
                "<polyline points=\"\(corners)\" fill=\"none\" stroke=\"\(color)\" stroke-width=\"2\"/>",
            ] + marks).joined(separator: "\n")
    }

    // MARK: Pieces

    private func line(
        _ x: Double, _ y: Double, _ toX: Double, _ toY: Double, _ color: String, width: Double = 1
    ) -> String {
        """
        <line x1="\(n(x))" y1="\(n(y))" x2="\(n(toX))" y2="\(n(toY))" stroke="\(color)" stroke-width="\(n(width))"/>
        """
    }

    private func text(
        _ x: Double, _ y: Double, _ words: String, anchor: String = "start", size: Double = 12
    ) -> String {
        let escaped = words.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
        return "<text x=\"\(n(x))\" y=\"\(n(y))\" text-anchor=\"\(anchor)\" font-size=\"\(n(size))\">\(escaped)</text>"
    }

    private func n(_ value: Double) -> String { String(format: "%.1f", value) }
}
