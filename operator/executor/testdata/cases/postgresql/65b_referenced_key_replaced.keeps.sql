SELECT t.a, t.b, t.c, u.id FROM "S s"."T" t LEFT JOIN u ON u.t = t.a ORDER BY 1
