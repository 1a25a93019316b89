SELECT id, at, st::text FROM w ORDER BY id
