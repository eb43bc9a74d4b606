-- kv has a column checksum from here on: what a server wrote into a row, as docs/sql.md has it under "The checksum of a
-- row". It is NULL in rows that older versions wrote, which are not checked and are not touched. SQLite cannot add a
-- column that may be there already, so sqlstore/sqlite adds it where it is missing, in migrate.
SELECT 1;
