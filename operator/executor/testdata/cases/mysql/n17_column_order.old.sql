CREATE TABLE t(a int, b int, c int, d int);
