SELECT id, "St ate"::text FROM "My App"."Or""der" ORDER BY id
