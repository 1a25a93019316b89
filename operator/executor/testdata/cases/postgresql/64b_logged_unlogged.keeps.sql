SELECT id::text, s, b FROM "A" UNION ALL SELECT id::text, a_id, NULL FROM b ORDER BY 1
