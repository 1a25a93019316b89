CREATE TABLE t(a int, b int AS (a+1), c int AS (b+1) STORED);
