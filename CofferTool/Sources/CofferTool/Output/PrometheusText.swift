internal import Foundation

/// Numbers in Prometheus's text exposition format, as a scrape or node_exporter's textfile collector reads them.
struct PrometheusText {
    private(set) var text = ""

    /// Adds a number that goes up and down.
    mutating func addGauge(_ name: String, _ help: String, _ value: Double) {
        addGauge(name, help, [([:], value)])
    }

    mutating func addGauge(_ name: String, _ help: String, _ value: Int) { addGauge(name, help, Double(value)) }

    /// Adds a number for each of some labels.
    ///
    /// - Parameters:
    ///   - name: by Prometheus's rules: what it belongs to, what it counts, and the unit, which is a base unit.
    ///   - help: what it is, in a line.
    mutating func addGauge(_ name: String, _ help: String, _ samples: [(labels: [String: String], value: Double)]) {
        text += "# HELP \(name) \(Self.escaped(help))\n# TYPE \(name) gauge\n"
        for sample in samples {
            let labels = sample.labels.sorted { $0.key < $1.key }.map { label in
                "\(label.key)=\"\(Self.escaped(label.value).replacing("\"", with: "\\\""))\""
            }
            let suffix = labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}"
            text += "\(name)\(suffix) \(Self.number(sample.value))\n"
        }
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
    }

    /// Whole numbers without a fraction, others as they are.
    private static func number(_ value: Double) -> String {
        Int(exactly: value).map(String.init) ?? "\(value)"
    }
}
