// The order of texts by their UTF-8 bytes.
package alpheus.schema;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Comparator;

/** The order of texts by their UTF-8 bytes. Java's own order is by UTF-16, which differs beyond the first plane. */
enum Utf8Order implements Comparator<String> {
    /** The order. */
    INSTANCE;

    @Override
    public int compare(String one, String other) {
        return Arrays.compareUnsigned(
                one.getBytes(StandardCharsets.UTF_8), other.getBytes(StandardCharsets.UTF_8));
    }
}
