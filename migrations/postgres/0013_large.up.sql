-- PostgreSQL stores large values out of line by itself. The number is taken so that both databases count alike.
SELECT 1;
