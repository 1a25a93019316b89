SELECT id, p::text, ps::text FROM t ORDER BY id
