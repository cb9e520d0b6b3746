package alpheus.otlp;

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.metrics.DoubleHistogram;
import io.opentelemetry.api.metrics.LongCounter;
import io.opentelemetry.api.metrics.LongUpDownCounter;
import io.opentelemetry.api.metrics.Meter;
import io.opentelemetry.exporter.otlp.http.metrics.OtlpHttpMetricExporter;
import io.opentelemetry.exporter.otlp.metrics.OtlpGrpcMetricExporter;
import io.opentelemetry.sdk.metrics.Aggregation;
import io.opentelemetry.sdk.metrics.ExplicitBucketHistogramOptions;
import io.opentelemetry.sdk.metrics.InstrumentSelector;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.View;
import io.opentelemetry.sdk.metrics.export.AggregationTemporalitySelector;
import io.opentelemetry.sdk.metrics.export.MetricExporter;
import io.opentelemetry.sdk.metrics.export.PeriodicMetricReader;
import io.opentelemetry.sdk.resources.Resource;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * Sends metrics that are known beforehand by OpenTelemetry's own SDK: {@code Program PROTOCOL TEMPORALITY ENDPOINT
 * NAME}, a batch for each line of input. After each batch it prints, as JSON, what it has recorded in all: by the names
 * of the attributes that the metrics become, counted here and not by the SDK.
 */
public final class Program {
    private static final List<Double> BOUNDS = List.of(0.5, 1.0, 10.0, 100.0);
    private static final List<String> BUCKETS =
            List.of("latency_to_0_5", "latency_to_1", "latency_to_10", "latency_to_100", "latency_over_100");
    private static final List<String> KINDS = List.of("book", "cd", "tape");
    private static final Duration NEVER = Duration.ofHours(1);

    private final Map<String, Double> totals = new TreeMap<>();
    private final Random random;
    private final SdkMeterProvider provider;
    private final LongCounter orders;
    private final LongUpDownCounter queue;
    private final DoubleHistogram latency;
    private final DoubleHistogram size;

    private Program(MetricExporter exporter, String name) {
        random = new Random(name.hashCode());
        Attributes resource = Attributes.of(
                AttributeKey.stringKey("service.name"), "shop", AttributeKey.stringKey("service.instance.id"), name);
        ExplicitBucketHistogramOptions bounds = ExplicitBucketHistogramOptions.builder()
                .setBucketBoundaries(BOUNDS)
                .build();
        provider = SdkMeterProvider.builder()
                .setResource(Resource.create(resource))
                .registerMetricReader(PeriodicMetricReader.builder(exporter).setInterval(NEVER).build())
                .registerView(instrument("latency"), view(Aggregation.explicitBucketHistogram(bounds)))
                .registerView(instrument("size"), view(Aggregation.base2ExponentialBucketHistogram()))
                .build();
        Meter meter = provider.get("shop");
        orders = meter.counterBuilder("orders").build();
        queue = meter.upDownCounterBuilder("queue").build();
        latency = meter.histogramBuilder("latency").setUnit("ms").build();
        size = meter.histogramBuilder("size").setUnit("By").build();
        meter.gaugeBuilder("temp").buildWithCallback(measured -> {
            double value = (random.nextInt(480) - 80) / 4.0;
            add("temp", value);
            add("temp_points", 1);
            measured.record(value);
        });
    }

    private static InstrumentSelector instrument(String name) {
        return InstrumentSelector.builder().setName(name).build();
    }

    private static View view(Aggregation aggregation) {
        return View.builder().setAggregation(aggregation).build();
    }

    private void add(String attribute, double value) {
        totals.merge(attribute, value, Double::sum);
    }

    private void batch() {
        for (int i = 20 + random.nextInt(40); i > 0; i--) {
            String kind = KINDS.get(random.nextInt(KINDS.size()));
            int number = 1 + random.nextInt(8);
            orders.add(number, Attributes.of(AttributeKey.stringKey("kind"), kind));
            add("orders_" + (kind.equals("tape") ? "other" : kind), number);
            int change = random.nextInt(9) - 3;
            queue.add(change);
            add("queue", change);
            // Eighths, so that sums are exact; bounds themselves among them.
            double value = random.nextBoolean() ? BOUNDS.get(random.nextInt(4)) : random.nextInt(2000) / 8.0;
            latency.record(value);
            add("latency_count", 1);
            add("latency_sum", value);
            add(BUCKETS.get((int) BOUNDS.stream().filter(bound -> bound < value).count()), 1);
            // No powers of two: the SDK finds their buckets by logarithms, and may take the next one.
            value(random.nextInt(10) == 0 ? 0 : (8 * random.nextInt(500) + 3) / 8.0);
        }
        // More than what was captured.
        record(1 << 20, "size_above");
    }

    private void value(double size) {
        int power = Math.getExponent(size);
        record(size, size == 0 ? "size_zero" : "size_at_" + (power < 0 ? "minus_" : "") + Math.abs(power));
    }

    private void record(double value, String bucket) {
        size.record(value);
        add("size_count", 1);
        add("size_sum", value);
        add(bucket, 1);
    }

    private String json() {
        return totals.entrySet().stream()
                .map(entry -> "\"" + entry.getKey() + "\": " + entry.getValue())
                .collect(Collectors.joining(", ", "{", "}"));
    }

    private static MetricExporter exporter(String protocol, String temporality, String endpoint) {
        AggregationTemporalitySelector preferred = temporality.equals("delta")
                ? AggregationTemporalitySelector.deltaPreferred()
                : AggregationTemporalitySelector.alwaysCumulative();
        return protocol.equals("grpc")
                ? OtlpGrpcMetricExporter.builder()
                        .setEndpoint("http://" + endpoint)
                        .setAggregationTemporalitySelector(preferred)
                        .build()
                : OtlpHttpMetricExporter.builder()
                        .setEndpoint("http://" + endpoint + "/v1/metrics")
                        .setCompression("gzip")
                        .setAggregationTemporalitySelector(preferred)
                        .build();
    }

    /**
     * Sends until the input ends.
     *
     * @param args the protocol, the temporality, where to, and the program's name
     * @throws IOException if the input cannot be read
     */
    public static void main(String[] args) throws IOException {
        Program program = new Program(exporter(args[0], args[1], args[2]), args[3]);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        while (orders.readLine() != null) {
            program.batch();
            if (!program.provider.forceFlush().join(60, TimeUnit.SECONDS).isSuccess()) {
                throw new IOException("the points were not taken");
            }
            System.out.println(program.json());
        }
        // Nothing more is collected at the end.
        Runtime.getRuntime().halt(0);
    }
}
