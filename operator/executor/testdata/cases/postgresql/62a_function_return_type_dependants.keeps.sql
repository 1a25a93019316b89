SELECT id, a, g FROM t
