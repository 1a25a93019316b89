SELECT id, all_of::text, two::text FROM w ORDER BY id
