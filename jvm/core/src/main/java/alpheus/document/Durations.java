// Durations as people write them.
package alpheus.document;

import java.math.BigInteger;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalLong;

/** Durations: {@code 10s}, {@code 5 min}, {@code 1hr}, {@code PT1H}. */
final class Durations {
    private static final long SECOND = 1_000_000L;
    private static final long MINUTE = 60 * SECOND;
    private static final long HOUR = 60 * MINUTE;
    private static final long DAY = 24 * HOUR;
    private static final long WEEK = 7 * DAY;
    private static final long LIMIT = 1L << 52;
    private static final int MAX_DIGITS = 256;

    private static final Map<String, Long> UNITS = Map.ofEntries(
            Map.entry("us", 1L), Map.entry("µs", 1L), Map.entry("ms", 1_000L), Map.entry("s", SECOND),
            Map.entry("sec", SECOND), Map.entry("second", SECOND), Map.entry("seconds", SECOND),
            Map.entry("m", MINUTE), Map.entry("min", MINUTE), Map.entry("minute", MINUTE),
            Map.entry("minutes", MINUTE), Map.entry("h", HOUR), Map.entry("hr", HOUR), Map.entry("hour", HOUR),
            Map.entry("hours", HOUR), Map.entry("d", DAY), Map.entry("day", DAY), Map.entry("days", DAY),
            Map.entry("w", WEEK), Map.entry("week", WEEK), Map.entry("weeks", WEEK));

    private Durations() {}

    /**
     * The duration in microseconds. Empty if the text is not a duration, or is zero, or exceeds the
     * cipher's time range.
     */
    static OptionalLong parse(String text) {
        BigInteger micros = text.startsWith("P") ? iso(text.substring(1)) : plain(text);
        boolean good = micros != null && micros.signum() > 0 && micros.compareTo(BigInteger.valueOf(LIMIT)) < 0;
        return good ? OptionalLong.of(micros.longValueExact()) : OptionalLong.empty();
    }

    private static BigInteger plain(String text) {
        int end = 0;
        while (end < text.length() && isDigit(text.charAt(end))) {
            end++;
        }
        Long unit = UNITS.get(text.substring(end).stripLeading());
        return unit == null ? null : product(text.substring(0, end), unit);
    }

    /** Parses an ISO 8601 duration after P, in weeks or shorter units. */
    private static BigInteger iso(String text) {
        int split = text.indexOf('T');
        String date = split < 0 ? text : text.substring(0, split);
        String time = split < 0 ? "" : text.substring(split + 1);
        Map<String, Long> days = new LinkedHashMap<>();
        days.put("W", WEEK);
        days.put("D", DAY);
        Map<String, Long> hours = new LinkedHashMap<>();
        hours.put("H", HOUR);
        hours.put("M", MINUTE);
        hours.put("S", SECOND);
        BigInteger first = parts(date, days);
        BigInteger second = parts(time, hours);
        return first == null || second == null ? null : first.add(second);
    }

    private static BigInteger parts(String text, Map<String, Long> units) {
        BigInteger total = BigInteger.ZERO;
        String rest = text;
        for (Map.Entry<String, Long> unit : units.entrySet()) {
            int end = rest.indexOf(unit.getKey());
            if (end < 0) {
                continue;
            }
            // A sign is read as in the Rust implementation.
            String number = rest.substring(rest.startsWith("+") ? 1 : 0, end);
            BigInteger part = product(number, unit.getValue());
            if (part == null) {
                return null;
            }
            total = total.add(part);
            rest = rest.substring(end + 1);
        }
        return rest.isEmpty() ? total : null;
    }

    private static BigInteger product(String digits, long unit) {
        boolean number = !digits.isEmpty() && digits.length() <= MAX_DIGITS
                && digits.chars().allMatch(c -> isDigit((char) c));
        return number ? new BigInteger(digits).multiply(BigInteger.valueOf(unit)) : null;
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }
}
