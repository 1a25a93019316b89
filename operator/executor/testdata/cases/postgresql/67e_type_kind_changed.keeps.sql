SELECT id, k::text FROM t
