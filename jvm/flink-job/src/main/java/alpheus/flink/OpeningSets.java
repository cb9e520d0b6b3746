// Opening sets that a task has heard of, by plan and start.
package alpheus.flink;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/**
 * Opening sets that a task has heard of, by plan and start. It mirrors broadcast state, which can only be
 * searched as a whole, and holds the same bytes.
 */
final class OpeningSets {
    private static final String PREFIX = "set/";

    private final Map<String, NavigableMap<Long, byte[]>> plans = new HashMap<>();

    /** Reads the sets from broadcast state. */
    static OpeningSets in(Iterable<Map.Entry<String, byte[]>> state) {
        OpeningSets sets = new OpeningSets();
        for (Map.Entry<String, byte[]> entry : state) {
            if (entry.getKey().startsWith(PREFIX)) {
                int slash = entry.getKey().lastIndexOf('/');
                String plan = entry.getKey().substring(PREFIX.length(), slash);
                sets.put(plan, Long.parseLong(entry.getKey().substring(slash + 1)), entry.getValue());
            }
        }
        return sets;
    }

    /** The name of a set in broadcast state. */
    static String key(String plan, long start) {
        return PREFIX + plan + "/" + start;
    }

    void put(String plan, long start, byte[] set) {
        plans.computeIfAbsent(plan, made -> new TreeMap<>()).put(start, set);
    }

    /** A plan's sets by their windows' starts. */
    NavigableMap<Long, byte[]> of(String plan) {
        return plans.getOrDefault(plan, new TreeMap<>());
    }

    /** A window's set, or null. */
    byte[] get(String plan, long start) {
        return of(plan).get(start);
    }

    /** Removes a plan's sets that start at or before a time. Returns their names. */
    List<String> forget(String plan, long upTo) {
        NavigableMap<Long, byte[]> old = of(plan).headMap(upTo, true);
        List<String> keys = new ArrayList<>();
        old.keySet().forEach(start -> keys.add(key(plan, start)));
        old.clear();
        if (of(plan).isEmpty()) {
            plans.remove(plan);
        }
        return keys;
    }
}
