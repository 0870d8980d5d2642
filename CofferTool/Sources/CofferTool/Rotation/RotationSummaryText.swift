/// What the summary of a rotation says.
extension RotationRun.Summary {
    private var counts: [(name: String, count: Int)] {
        [
            ("rotated", rotatedCount), ("alreadyRotated", wasRotatedCount), ("doneBefore", doneBeforeCount),
            ("notDue", notDueCount), ("notAsAsked", differingCount), ("due", dueCount), ("failed", failures.count),
            ("notTried", untriedCount), ("oldGenerationsLeft", leftCount),
        ]
    }

    /// What a file of metrics says. Each store has one outcome.
    func add(to metrics: inout PrometheusText) {
        let outcomes = counts.filter { $0.name != "oldGenerationsLeft" }
        metrics.addGauge(
            "coffer_rotation_stores", "Stores of the last rotation, by outcome.",
            outcomes.map { (["outcome": $0.name], Double($0.count)) })
        metrics.addGauge(
            "coffer_rotation_stores_with_old_generations",
            "Stores in which something encrypted under the old key is left.", leftCount)
        metrics.addGauge(
            "coffer_rotation_passed_over", "Files and folders beside the stores that were skipped.",
            passedOver.count)
        metrics.addGauge("coffer_rotation_cancelled", "Whether the last rotation was cancelled.", isCancelled ? 1 : 0)
    }

    var text: String {
        let parts = [
            (rotatedCount, "rotated"), (wasRotatedCount, "rotated before"),
            (doneBeforeCount, "done in an earlier run"), (notDueCount, "not due"), (differingCount, "not as asked"),
            (dueCount, "to be rotated"), (failures.count, "failed"), (untriedCount, "not tried"),
            (leftCount, "with an old generation left"), (passedOver.count, "skipped"),
        ]
        let words = parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return storeCount.counted("store") + (words.isEmpty ? "" : ": " + words.joined(separator: ", "))
            + (receipts.map { "\nreceipts end with \($0)" } ?? "")
    }

    var json: String {
        var line = JSONLine(type: "summary")
        add(to: &line)
        if let receipts { line.add("receipts", receipts) }
        return line.finished
    }

    func add(to line: inout JSONLine) {
        line.add("stores", storeCount)
        for (name, count) in counts { line.add(name, count) }
        line.add("cancelled", isCancelled)
        line.add("passedOver", passedOver)
    }
}
