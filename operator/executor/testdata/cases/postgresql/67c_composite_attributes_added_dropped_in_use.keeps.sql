SELECT t.id, (p).x, (p).y, (q).a FROM t, u
