#!/bin/sh
# libxerial-sqlite-jdbc-java 3.40.1.0 of Debian 12 (sqlite-jdbc, SQLite for the JVM), with OpenJDK 17.
#
# Seen: setTimestamp stores a number of milliseconds, and getTimestamp reads it, so that all looks right in Java. For SQLite a number is less than each text:
# `expires < CURRENT_TIMESTAMP` is true for the year 2999, and datetime(expires) is NULL. A java.time.Instant is a text with T and Z, which is greater than
# each of CURRENT_TIMESTAMP's on the same day. And getObject is an Integer up to 2^31 and a Long from there on, whatever the column's type.
# Expected: a time that SQLite's own functions read and compare, and one class for one column.
# Who is hurt: stores with leases, sessions or retention in SQL: the clean-up `DELETE ... WHERE expires < CURRENT_TIMESTAMP` deletes all rows that Java wrote.
# `(Integer) getObject("revision")` works until revision 2147483648, `(Long)` never before.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download libxerial-sqlite-jdbc-java=3.40.1.0+dfsg-1+deb12u1 libxerial-sqlite-jdbc-jni=3.40.1.0+dfsg-1+deb12u1 libsqlite3-0 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >Main.java <<'END'
import java.sql.*;
import java.time.Instant;

public class Main {
    public static void main(String[] args) throws Exception {
        try (Connection db = DriverManager.getConnection("jdbc:sqlite::memory:"); Statement sql = db.createStatement()) {
            sql.execute("CREATE TABLE lease (name TEXT, expires TIMESTAMP, revision BIGINT)");
            Instant later = Instant.parse("2999-01-01T00:00:00Z");
            try (PreparedStatement insert = db.prepareStatement("INSERT INTO lease VALUES (?, ?, ?)")) {
                insert.setString(1, "Timestamp");
                insert.setTimestamp(2, Timestamp.from(later));
                insert.setLong(3, 2147483647L);
                insert.execute();
                insert.setString(1, "Instant");
                insert.setObject(2, later);
                insert.setLong(3, 2147483648L);
                insert.execute();
            }
            sql.execute("INSERT INTO lease VALUES ('SQL', '2999-01-01 00:00:00', 1)");
            ResultSet rows = sql.executeQuery("SELECT name, typeof(expires), expires < CURRENT_TIMESTAMP, datetime(expires), revision FROM lease");
            while (rows.next()) {
                System.out.printf("%s: stored as %s, past: %s, datetime(): %s, revision: %s%n", rows.getString(1), rows.getString(2),
                    rows.getBoolean(3), rows.getString(4), rows.getObject(5).getClass().getSimpleName());
            }
            rows.close();
            System.out.println("same day, an Instant before CURRENT_TIMESTAMP's text: " + before(db));
            System.out.println("rows deleted as expired: " + sql.executeUpdate("DELETE FROM lease WHERE expires < CURRENT_TIMESTAMP"));
        }
    }

    static boolean before(Connection db) throws SQLException {
        try (PreparedStatement query = db.prepareStatement("SELECT ? < '2024-01-01 23:59:59'")) {
            query.setObject(1, Instant.parse("2024-01-01T00:00:00Z"));
            return query.executeQuery().getBoolean(1);
        }
    }
}
END
TZ=UTC LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu java -Dorg.sqlite.lib.path=usr/lib/x86_64-linux-gnu/jni -cp usr/share/java/sqlite-jdbc.jar Main.java | tee out
cat >want <<'END'
Timestamp: stored as integer, past: true, datetime(): null, revision: Integer
Instant: stored as text, past: false, datetime(): 2999-01-01 00:00:00, revision: Long
SQL: stored as text, past: false, datetime(): 2999-01-01 00:00:00, revision: Integer
same day, an Instant before CURRENT_TIMESTAMP's text: false
rows deleted as expired: 1
END
diff want out
