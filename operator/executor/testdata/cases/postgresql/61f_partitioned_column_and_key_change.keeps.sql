SELECT id, k, v FROM l ORDER BY id
