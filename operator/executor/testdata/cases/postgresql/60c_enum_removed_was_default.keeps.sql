SELECT id, st::text, t, kind::text FROM w ORDER BY id
