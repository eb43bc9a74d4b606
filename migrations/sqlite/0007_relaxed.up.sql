-- Where commits need not wait for the disk, kv_meta says which revisions are set aside for them ('relaxed'), and in
-- which run of the machine ('boot'). The number is taken so that both databases count alike.
SELECT 1;
