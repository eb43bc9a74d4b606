-- Values are not compressed; the number is taken so that both databases count alike.
SELECT 1;
