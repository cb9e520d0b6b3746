// The steps of a compiled encoding.
package alpheus.encode;

import alpheus.layout.Field;
import alpheus.layout.Field.Cell;
import alpheus.layout.Statistic;
import alpheus.layout.Statistic.Moment;
import alpheus.schema.Aggregation;
import alpheus.schema.Edges;
import alpheus.schema.Schema;
import java.util.random.RandomGenerator;

/**
 * One step: adds one field's part of an event. The layout was made from the bounds of the values, so the
 * result always fits. Only a negative digit wraps, as it must.
 */
@FunctionalInterface
interface Op {
    /** Adds this step's part of the event to the words. */
    void add(Row row, RandomGenerator random, long[] words);

    /** The step of a field. */
    static Op of(Schema schema, Field field) {
        Statistic statistic = field.statistic();
        if (statistic instanceof Statistic.EventCount) {
            Cell cell = field.cell(0);
            return (row, random, words) -> put(words, cell, 1, 1);
        } else if (statistic instanceof Statistic.Count count) {
            return presence(count.of(), field.cell(0));
        } else if (statistic instanceof Statistic.Sum sum) {
            return moment(sum.of(), sum.of(), Moment.X, field.cell(0));
        } else if (statistic instanceof Statistic.SumOfSquares squares) {
            return moment(squares.of(), squares.of(), Moment.XX, field.cell(0));
        } else if (statistic instanceof Statistic.Pair pair) {
            return moment(pair.x(), pair.y(), pair.moment(), field.cell(0));
        } else if (statistic instanceof Statistic.Any any) {
            return word(any.of(), 1, field.cell(0).word());
        } else if (statistic instanceof Statistic.All all) {
            return word(all.of(), 0, field.cell(0).word());
        }
        return ofCells(schema, field);
    }

    private static Op ofCells(Schema schema, Field field) {
        Statistic statistic = field.statistic();
        Cell[] cells = new Cell[field.cells()];
        for (int i = 0; i < cells.length; i++) {
            cells[i] = field.cell(i);
        }
        if (statistic instanceof Statistic.Histogram histogram) {
            Aggregation offered = aggregation(schema, histogram.of(), histogram.aggregation());
            return binned(histogram.of(), 0, histogram.of(), ((Aggregation.Histogram) offered).edges(), cells);
        } else if (statistic instanceof Statistic.By by) {
            Aggregation offered = aggregation(schema, by.of(), by.aggregation());
            return binned(by.of(), by.order(), by.by(), ((Aggregation.By) offered).edges(), cells);
        } else if (statistic instanceof Statistic.Threshold threshold) {
            Aggregation offered = aggregation(schema, threshold.of(), threshold.aggregation());
            return split(threshold.of(), threshold.order(), ((Aggregation.Threshold) offered).at(), cells);
        }
        Statistic.Sketch sketch = (Statistic.Sketch) statistic;
        Aggregation offered = aggregation(schema, sketch.of(), sketch.aggregation());
        Aggregation.Sketch shape = (Aggregation.Sketch) offered;
        SketchHash hash = new SketchHash(schema.id(), sketch.of(), sketch.aggregation(), shape);
        return sketch(sketch.of(), hash, cells);
    }

    private static Aggregation aggregation(Schema schema, int attribute, int position) {
        return schema.attributes().get(attribute).aggregations().get(position);
    }

    /** One for each event that has the attribute, regardless of its type. */
    private static Op presence(int of, Cell cell) {
        return (row, random, words) -> {
            if (row.kind(of) != Row.ABSENT) {
                put(words, cell, 1, 1);
            }
        };
    }

    /** A moment of two values, if the event has both. */
    private static Op moment(int x, int y, Moment moment, Cell cell) {
        return (row, random, words) -> {
            if (row.isNumeric(x) && row.isNumeric(y)) {
                long one = row.number(x);
                long other = row.number(y);
                switch (moment) {
                    case ONE -> put(words, cell, 1, 1);
                    case X -> put(words, cell, one, 1);
                    case Y -> put(words, cell, other, 1);
                    case XX -> put(words, cell, one, one);
                    case XY -> put(words, cell, one, other);
                    default -> put(words, cell, other, other);
                }
            }
        };
    }

    /** A power of one value in the cell of the bin of another, if the event has both. */
    private static Op binned(int of, int order, int by, Edges edges, Cell[] cells) {
        return (row, random, words) -> {
            boolean there = row.isNumeric(by) && row.isNumeric(of);
            if (there) {
                power(words, cells[edges.bin(row.number(by))], row.number(of), order);
            }
        };
    }

    /** A power of the value in the first cell if it is at least {@code at}, else in the second. */
    private static Op split(int of, int order, long at, Cell[] cells) {
        return (row, random, words) -> {
            if (row.isNumeric(of)) {
                power(words, cells[row.number(of) >= at ? 0 : 1], row.number(of), order);
            }
        };
    }

    /** A random word if the value matches; zero would mean that it was absent. */
    private static Op word(int of, long when, int word) {
        return (row, random, words) -> {
            if (row.kind(of) == Row.TRUTH && row.number(of) == when) {
                long drawn = random.nextLong();
                words[word] += drawn == 0 ? 1 : drawn;
            }
        };
    }

    /** One in the item's cell of each row. */
    private static Op sketch(int of, SketchHash hash, Cell[] cells) {
        return (row, random, words) -> {
            if (row.kind(of) == Row.TEXT) {
                hash.visit(row.text(of), cell -> put(words, cells[cell], 1, 1));
            } else if (row.isNumeric(of)) {
                hash.visit(SketchHash.numberItem(row.number(of)), cell -> put(words, cells[cell], 1, 1));
            }
        };
    }

    private static void power(long[] words, Cell cell, long x, int order) {
        put(words, cell, order == 0 ? 1 : x, order == 2 ? x : 1);
    }

    /** Adds a·b to a cell. */
    private static void put(long[] words, Cell cell, long a, long b) {
        long low = a * b;
        if (!cell.limbs()) {
            words[cell.word()] += low << cell.shift();
            return;
        }
        // The 128-bit product: its low 32 bits, then the rest, signed.
        long high = Math.multiplyHigh(a, b);
        words[cell.word()] += low & 0xffff_ffffL;
        words[cell.word() + 1] += (high << 32) | (low >>> 32);
    }
}
