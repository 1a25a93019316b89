CREATE TYPE p AS (x int, y text); CREATE TABLE t (id int PRIMARY KEY, p p); INSERT INTO t VALUES (1, '(1,b)'), (2, NULL);
