SELECT id, r::text, m::text FROM t
