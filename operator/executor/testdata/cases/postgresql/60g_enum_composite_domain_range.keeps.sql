SELECT id, d::text, p::text, ps::text, r::text FROM w ORDER BY id
