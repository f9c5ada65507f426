#!/usr/bin/env python3
"""Tests of check_operations.py: what it reads, and that it refuses what is wrong."""

import unittest

import check_operations as check

METRICS = {
    "proofmill_tasks_waiting": ("gauge", frozenset({"workflow", "stage"})),
    "proofmill_retries_total": ("counter", frozenset({"workflow", "stage"})),
    "proofmill_task_wait_seconds": ("histogram", frozenset()),
}


class Operations(unittest.TestCase):
    def names(self, expression):
        return [name for name, _ in check.selectors(expression)]

    def faults(self, expression):
        return list(check.unknown(expression, METRICS, {"workflow:x:sum"}))

    def test_metrics_of_expressions_are_found(self):
        for expression, expected in [
            ("a", ["a"]),
            ("sum by (workflow, stage) (rate(a_total[5m])) / sum(b) by (x)", ["a_total", "b"]),
            ('a{x="b{c}", y=~"$z"} > 1.5e3 and on (workflow) c offset 30m', ["a", "c"]),
            ("histogram_quantile(0.99, sum by (le) (rate(a_bucket[$__rate_interval])))", ["a_bucket"]),
            ("a * on (x) group_left (y) b unless w:c:sum == bool 0", ["a", "b", "w:c:sum"]),
            ("topk(5, a) or vector(1)", ["a"]),
        ]:
            self.assertEqual(self.names(expression), expected, expression)
        self.assertEqual(check.selectors('a{x="b", y!~"c"}'), [("a", ["x", "y"])])
        with self.assertRaises(ValueError):
            self.names('{__name__="a"}')

    def test_unknown_metrics_and_labels_are_refused(self):
        self.assertEqual(self.faults('rate(proofmill_retries_total{stage="x",instance="y"}[5m]) + workflow:x:sum'), [])
        self.assertEqual(self.faults("proofmill_task_wait_seconds_count"), [])
        self.assertIn("neither", self.faults("proofmill_tasks_awaiting")[0])
        self.assertIn("neither", self.faults("proofmill_retries")[0])
        self.assertIn("no label kind", self.faults('proofmill_tasks_waiting{kind="x"}')[0])
        self.assertIn("only the series", self.faults("proofmill_task_wait_seconds")[0])

    def test_queries_that_leave_a_variable_out_are_refused(self):
        def faults(expression):
            return list(check.unselected(expression, METRICS, ["workflow", "stage"]))

        self.assertEqual(faults('sum(proofmill_tasks_waiting{workflow=~"$workflow",stage=~"$stage"})'), [])
        self.assertEqual(faults('workflow:x:sum{workflow=~"$workflow"} / scalar(all:y:sum)'), [])
        # It has neither label.
        self.assertEqual(faults("rate(proofmill_task_wait_seconds_bucket[5m])"), [])
        self.assertIn("$stage", faults('proofmill_tasks_waiting{workflow=~"$workflow"}')[0])
        self.assertIn("$workflow", faults('proofmill_tasks_waiting{workflow="one",stage=~"$stage"}')[0])
        self.assertIn("$workflow", faults("workflow:x:sum")[0])

    def test_pages_are_compared_with_the_documentation(self):
        page = (
            "# TYPE proofmill_tasks_waiting gauge\n"
            'proofmill_tasks_waiting{workflow="a",stage="b \\" {c=\\"d\\"}"} 1.0\n'
            "# TYPE proofmill_retries counter\n"
            'proofmill_retries_total{workflow="a",stage="b"} 1.0\n'
            "# TYPE proofmill_task_wait_seconds histogram\n"
            'proofmill_task_wait_seconds_sum 1\nproofmill_task_wait_seconds_bucket{le="+Inf"} 1\n# EOF\n'
        )
        self.assertEqual(check.served(page), METRICS)
        more = check.served(page + "# TYPE proofmill_x gauge\nproofmill_x{} 1\n")
        self.assertIn("does not list proofmill_x", next(check.compare_metrics(METRICS, more)))
        self.assertIn("which no page has", next(check.compare_metrics(more, METRICS)))
        relabelled = METRICS | {"proofmill_retries_total": ("counter", frozenset({"stage"}))}
        self.assertIn("says that", next(check.compare_metrics(relabelled, METRICS)))

    def test_rows_of_the_documentation_are_read(self):
        row = "| `proofmill_x` | gauge | `a`, `b` | tasks | what it is |\n"
        self.assertEqual(check.documented(row), {"proofmill_x": ("gauge", frozenset("ab"))})
        for wrong in (row + row, "| `proofmill_x` | number | | tasks | what |"):
            with self.assertRaises(ValueError):
                check.documented(wrong)

    def test_rules_are_read(self):
        text = (
            "    rules:\n      - record: w:a:sum\n        expr: >-\n          sum by (w) (\n            a\n          )\n"
            '      - alert: A\n        expr: w:a:sum > 0\n        annotations:\n          runbook: "docs/a.md"\n'
        )
        self.assertEqual(
            check.read_rules(text),
            [{"record": "w:a:sum", "expr": " sum by (w) ( a )"},
             {"alert": "A", "expr": "w:a:sum > 0", "runbook": "docs/a.md"}],
        )

    def test_headings_have_githubs_anchors(self):
        self.assertEqual(check.anchors("# A `b` c, d-e\n## `[deadline]`\n"), {"a-b-c-d-e", "deadline"})


if __name__ == "__main__":
    unittest.main()
