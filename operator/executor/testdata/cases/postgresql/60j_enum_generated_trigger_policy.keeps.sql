SELECT id, st::text, open, next::text FROM w ORDER BY id
