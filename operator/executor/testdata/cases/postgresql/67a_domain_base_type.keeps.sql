SELECT id, d::text, ds::text FROM t
