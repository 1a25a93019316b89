SELECT id, (p).x, (p).y, p IS NULL FROM t ORDER BY id
