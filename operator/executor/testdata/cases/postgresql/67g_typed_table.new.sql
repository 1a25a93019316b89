CREATE TYPE p AS (x int, y text, z int); CREATE TABLE t OF p (PRIMARY KEY (x), y WITH OPTIONS DEFAULT 'q'); CREATE TABLE u (x int, y text);
