CREATE TABLE t(a int, b int AS (a+1) STORED, c int);
