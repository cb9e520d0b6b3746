import java.sql.DriverManager;
import java.sql.SQLException;

/** What a program with JDBC does: prepared statements, lists of tables and columns, and an error. */
public class JdbcClient {
    public static void main(String[] arguments) throws SQLException {
        try (var connection = DriverManager.getConnection(arguments[0], "ann", System.getenv("PGPASSWORD"))) {
            var sql = "SELECT sum_load, checked FROM load WHERE population >= ? AND status = ? ORDER BY window_start";
            try (var statement = connection.prepareStatement(sql)) {
                statement.setInt(1, 3);
                statement.setString(2, "ok");
                // From the fifth run on, the driver asks for values in binary.
                for (var run = 1; run <= 7; run++) {
                    try (var rows = statement.executeQuery()) {
                        rows.next();
                        if (run == 7) System.out.println(rows.getBigDecimal(1) + " " + rows.getBoolean(2));
                    }
                }
            }
            var known = connection.getMetaData();
            try (var tables = known.getTables(null, "released", "load", null)) {
                while (tables.next()) {
                    System.out.println(tables.getString(2) + "." + tables.getString(3) + " " + tables.getString(4));
                }
            }
            try (var columns = known.getColumns(null, "released", "load", "sum_load")) {
                while (columns.next()) System.out.println(columns.getString(4) + " " + columns.getString(6));
            }
            try (var statement = connection.createStatement()) {
                statement.executeQuery("SELECT avg(health) FROM meters");
            } catch (SQLException refused) {
                System.out.println(refused.getSQLState() + " " + refused.getMessage().contains("private"));
            }
        }
    }
}
