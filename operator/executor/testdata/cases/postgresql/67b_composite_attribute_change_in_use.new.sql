CREATE TYPE "P p" AS (x bigint, y text, z int); CREATE TABLE t (id int PRIMARY KEY, p "P p" DEFAULT '(1,a,2)', ps "P p"[]); CREATE VIEW v AS SELECT (p).x FROM t;
