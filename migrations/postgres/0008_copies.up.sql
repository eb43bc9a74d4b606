-- Servers on SQLite may keep copies of live values for a quicker start. The number is taken so that both
-- databases count alike.
SELECT 1;
