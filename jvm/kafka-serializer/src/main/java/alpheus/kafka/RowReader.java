// Reads an application's values as rows of the schema.
package alpheus.kafka;

import alpheus.encode.Row;
import alpheus.schema.Schema;

/**
 * Reads an application's values as rows of the schema. Set your own class in {@code alpheus.row.reader}. It
 * needs a constructor without arguments.
 *
 * @param <V> the application's values
 */
public interface RowReader<V> {
    /**
     * Sets the row's attributes; those that it does not set are absent.
     *
     * @param value one event
     * @param schema the schema, whose attributes the row has in order
     * @param row an empty row
     * @throws RowException if the value is not a row of the schema; the error must not contain the value
     */
    void read(V value, Schema schema, Row row) throws RowException;
}
