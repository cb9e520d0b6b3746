// Parses a privacy budget.
package alpheus.schema;

import alpheus.document.DocumentException;
import alpheus.document.Fields;
import alpheus.document.Node;
import alpheus.document.Problem;
import alpheus.schema.Budget.Unit;
import java.util.List;

/** Parses a privacy budget. */
final class BudgetReader {
    private static final List<String> UNITS = List.of("event", "person-per-window", "person-per-period");
    private static final int MICRO = 6;
    private static final int ATTO = 18;
    private static final long MAX_DELTA = 999_999_999_999_999_999L;

    private BudgetReader() {}

    static Budget read(Node node) throws DocumentException {
        Fields fields = Fields.of(node, List.of("perWindow", "total", "delta", "unit", "period"));
        long window = positive(fields.required("perWindow"), MICRO);
        long total = positive(fields.required("total"), MICRO);
        if (window > total) {
            throw fields.required("perWindow").error(Problem.OUT_OF_RANGE, "above 0", "the total");
        }
        long delta = fields.readOr("delta", 0L, found -> positive(found, ATTO));
        Unit unit = Unit.values()[fields.required("unit").word(UNITS)];
        if (unit == Unit.PERSON_PER_PERIOD) {
            return new Budget(window, total, delta, unit, fields.required("period").duration());
        }
        fields.refuse("period", "this unit; make it `person-per-period`");
        return new Budget(window, total, delta, unit, 0);
    }

    /** A number above 0 in units of 10^-scale; δ stays below 1 by its 18 places. */
    private static long positive(Node node, int scale) throws DocumentException {
        long number = node.decimal(scale);
        boolean isDelta = scale == ATTO;
        if (number <= 0 || isDelta && number > MAX_DELTA) {
            throw node.error(Problem.OUT_OF_RANGE, "above 0", isDelta ? "below 1" : "9 × 10^12");
        }
        return number;
    }
}
