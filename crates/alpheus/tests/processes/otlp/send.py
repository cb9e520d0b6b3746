"""A program with OpenTelemetry's own SDK, whose metrics are known beforehand.

  send.py capture FILE                                one batch, as an exporter would send it
  send.py send PROTOCOL TEMPORALITY ENDPOINT NAME     a batch for each line of input

After each batch it prints, as JSON, what it has recorded in all: by the names of the attributes that the metrics
become, counted here and not by the SDK.
"""

import bisect
import collections
import json
import math
import os
import pathlib
import random
import sys
import urllib.request

from google.protobuf.json_format import MessageToJson
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    InMemoryMetricReader,
    MetricExporter,
    MetricExportResult,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.metrics.view import (
    ExplicitBucketHistogramAggregation,
    ExponentialBucketHistogramAggregation,
    View,
)
from opentelemetry.sdk.resources import Resource

BOUNDS = [0.5, 1, 10, 100]
BUCKETS = ["latency_to_0_5", "latency_to_1", "latency_to_10", "latency_to_100", "latency_over_100"]
NEVER = 3_600_000


class JsonExporter(MetricExporter):
    """OTLP over HTTP in JSON, which the SDK has no exporter for."""

    def __init__(self, endpoint, preferred_temporality):
        super().__init__(preferred_temporality=preferred_temporality)
        self.endpoint = endpoint

    def export(self, metrics_data, timeout_millis=10_000, **_):
        body = MessageToJson(encode_metrics(metrics_data)).encode()
        request = urllib.request.Request(self.endpoint, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            assert json.load(response) == {}, "points were refused"
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis=10_000):
        return True

    def shutdown(self, timeout_millis=30_000, **_):
        pass


class Program:
    """Records batches and what they add up to."""

    def __init__(self, reader, name):
        self.random = random.Random(name)
        self.totals = collections.Counter()
        views = [
            View(instrument_name="latency", aggregation=ExplicitBucketHistogramAggregation(BOUNDS)),
            View(instrument_name="size", aggregation=ExponentialBucketHistogramAggregation()),
        ]
        resource = Resource.create({"service.name": "shop", "service.instance.id": name})
        self.provider = MeterProvider([reader], resource=resource, views=views)
        meter = self.provider.get_meter("shop")
        self.orders = meter.create_counter("orders", description="Orders by kind")
        self.queue = meter.create_up_down_counter("queue")
        self.latency = meter.create_histogram("latency", unit="ms")
        self.size = meter.create_histogram("size", unit="By")
        meter.create_observable_gauge("temp", callbacks=[self.temperature])

    def temperature(self, _):
        value = self.random.randrange(-80, 400) / 4
        self.totals["temp"] += value
        self.totals["temp_points"] += 1
        yield Observation(value)

    def batch(self, kinds):
        for _ in range(self.random.randrange(20, 60)):
            kind, number = self.random.choice(kinds), self.random.randrange(1, 9)
            self.orders.add(number, {"kind": kind})
            self.totals["orders_" + {"tape": "other"}.get(kind, kind)] += number
            change = self.random.randrange(-3, 6)
            self.queue.add(change)
            self.totals["queue"] += change
            # Eighths, so that sums are exact; bounds themselves among them.
            value = self.random.choice([0.5, 1, 10, 100, self.random.randrange(0, 2000) / 8])
            self.latency.record(value)
            self.totals["latency_count"] += 1
            self.totals["latency_sum"] += value
            self.totals[BUCKETS[bisect.bisect_left(BOUNDS, value)]] += 1
            value = self.random.choice([0, 1, 2, 64, self.random.randrange(1, 4000) / 8])
            self.record_size(value, power(value))

    def record_size(self, value, bucket):
        self.size.record(value)
        self.totals["size_count"] += 1
        self.totals["size_sum"] += value
        self.totals[bucket] += 1


def power(value):
    """The bucket of powers of two: above a power, up to the next."""
    if value == 0:
        return "size_zero"
    mantissa, exponent = math.frexp(value)
    index = exponent - 2 if mantissa == 0.5 else exponent - 1
    return f"size_at_{'minus_' if index < 0 else ''}{abs(index)}"


def exporter(protocol, temporality, endpoint):
    preferred = {}
    if temporality == "delta":
        preferred = {Counter: AggregationTemporality.DELTA, Histogram: AggregationTemporality.DELTA}
    if protocol == "json":
        return JsonExporter(f"http://{endpoint}/v1/metrics", preferred)
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter

        return OTLPMetricExporter(endpoint=endpoint, insecure=True, preferred_temporality=preferred)
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    url = f"http://{endpoint}/v1/metrics"
    return OTLPMetricExporter(endpoint=url, compression=Compression.Gzip, preferred_temporality=preferred)


def main():
    if sys.argv[1] == "capture":
        reader = InMemoryMetricReader()
        program = Program(reader, "capture")
        program.batch(["book", "cd"])
        pathlib.Path(sys.argv[2]).write_bytes(encode_metrics(reader.get_metrics_data()).SerializeToString())
        return
    protocol, temporality, endpoint, name = sys.argv[2:]
    reader = PeriodicExportingMetricReader(exporter(protocol, temporality, endpoint), NEVER)
    program = Program(reader, name)
    for _ in sys.stdin:
        program.batch(["book", "cd", "tape"])
        # More than what was captured.
        program.record_size(1 << 20, "size_above")
        assert program.provider.force_flush()
        print(json.dumps(program.totals), flush=True)
    # Nothing more is collected at the end.
    os._exit(0)


if __name__ == "__main__":
    main()
