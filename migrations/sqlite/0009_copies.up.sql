-- Servers on PostgreSQL keep copies of live values as well. The number is taken so that both databases
-- count alike.
SELECT 1;
