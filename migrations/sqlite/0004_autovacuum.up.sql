-- Freed pages are used again at once; the number is taken so that both databases count alike.
SELECT 1;
