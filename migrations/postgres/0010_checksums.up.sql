-- PostgreSQL has checksums of pages (data_checksums), which see more than one of a row would. The number is taken so
-- that both databases count alike.
SELECT 1;
