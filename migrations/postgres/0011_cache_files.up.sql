-- Cache files are told by the identity of the database (sqlstore/attest.go): its epoch, with the keys of the files that it
-- attests to, in kv_meta ('cache_files'); its head; the revisions of its live rows. Triggers that ended all of
-- them when a row was edited by hand are gone: who edits rows runs `rowlock store verify --rebuild-cache`.
DROP TRIGGER IF EXISTS kv_changed_in_place ON kv;
DROP TRIGGER IF EXISTS kv_removed_live ON kv;
DROP TRIGGER IF EXISTS kv_removed_all ON kv;
DROP FUNCTION IF EXISTS kv_copies_end();
DELETE FROM kv_meta WHERE key = 'copies';
