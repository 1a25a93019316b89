CREATE TABLE t(a int, b int AS (a+1) VIRTUAL, KEY k (b));
