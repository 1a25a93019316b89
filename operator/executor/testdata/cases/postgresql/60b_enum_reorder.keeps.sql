SELECT id, st::text FROM w ORDER BY id
