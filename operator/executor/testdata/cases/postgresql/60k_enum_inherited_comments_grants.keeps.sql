SELECT id, st::text FROM p ORDER BY id
