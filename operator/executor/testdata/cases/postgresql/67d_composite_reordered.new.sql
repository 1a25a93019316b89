CREATE TYPE p AS (y text, n date, x int); CREATE TABLE t (id int PRIMARY KEY, p p);
