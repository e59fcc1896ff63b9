"""The counters, as Prometheus reads them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from routelearn.serve.metrics import Metrics


def test_the_text_is_what_dashboards_read():
    metrics = Metrics()
    metrics.requests.labels('a"b', "200").inc()
    metrics.requests.labels('a"b', "200").inc()
    metrics.batch.labels("construct").observe(3)
    metrics.in_flight.set_function(lambda: 7)
    lines = metrics.text().decode().splitlines()
    assert lines[:3] == [
        "# HELP routelearn_requests_total Requests by status.",
        "# TYPE routelearn_requests_total counter",
        'routelearn_requests_total{path="a\\"b",status="200"} 2.0',
    ]
    assert "# TYPE routelearn_batch_size histogram" in lines
    assert 'routelearn_batch_size_bucket{lane="construct",le="2.0"} 0.0' in lines
    assert 'routelearn_batch_size_bucket{lane="construct",le="4.0"} 1.0' in lines
    assert 'routelearn_batch_size_bucket{lane="construct",le="+Inf"} 1.0' in lines
    assert 'routelearn_batch_size_sum{lane="construct"} 3.0' in lines
    assert 'routelearn_batch_size_count{lane="construct"} 1.0' in lines
    assert "routelearn_in_flight 7.0" in lines
    assert "routelearn_cancelled_total 0.0" in lines
    assert "_created" not in "".join(lines)


def test_names_and_labels_are_those_of_the_dashboards():
    metrics = Metrics()
    metrics.requests.labels("/solve", "200").inc()
    metrics.seconds.labels("/solve").observe(0.1)
    metrics.batch.labels("construct").observe(3)
    for by_lane in (metrics.deaths, metrics.waiting, metrics.ready):
        by_lane.labels("long")
    for by_one in (metrics.token_seconds, metrics.jobs, metrics.jobs_ended):
        by_one.labels("one")
    metrics.token_requests.labels("one", "200")
    samples = [one for family in text_string_to_metric_families(metrics.text().decode()) for one in family.samples]
    histogram = {
        f"routelearn_{name}_{part}": {label} | ({"le"} if part == "bucket" else set())
        for name, label in (("request_seconds", "path"), ("batch_size", "lane"))
        for part in ("bucket", "count", "sum")
    }
    assert {one.name: set(one.labels) for one in samples} == histogram | {
        "routelearn_requests_total": {"path", "status"},
        "routelearn_cancelled_total": set(),
        "routelearn_worker_deaths_total": {"lane"},
        "routelearn_in_flight": set(),
        "routelearn_waiting": {"lane"},
        "routelearn_workers_ready": {"lane"},
        "routelearn_resident_bytes": set(),
        "routelearn_token_requests_total": {"token", "status"},
        "routelearn_token_seconds_total": {"token"},
        "routelearn_jobs": {"state"},
        "routelearn_job_bytes": set(),
        "routelearn_jobs_ended_total": {"state"},
        "routelearn_access_log_dropped_total": set(),
    }


def test_counters_of_millions_count_on():
    metrics = Metrics()
    metrics.cancelled.inc(12_345_678)
    metrics.cancelled.inc()
    metrics.seconds.labels("/").observe(12_345_678.25)
    values = {
        one.name: one.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for one in family.samples
    }
    assert values["routelearn_cancelled_total"] == 12_345_679
    assert values["routelearn_request_seconds_sum"] == 12_345_678.25


def test_applications_in_one_process_count_for_themselves():
    one, other = Metrics({"replica": "one"}), Metrics({"replica": "other"})
    one.cancelled.inc()
    assert 'routelearn_cancelled_total{replica="one"} 1.0' in one.text().decode()
    assert 'routelearn_cancelled_total{replica="other"} 0.0' in other.text().decode()
