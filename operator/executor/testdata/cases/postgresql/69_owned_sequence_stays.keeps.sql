SELECT q.last_value AS q, r.last_value AS r, b FROM q, "R r" r, t
