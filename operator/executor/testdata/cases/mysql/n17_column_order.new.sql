CREATE TABLE t(d int, b int, a int, c int);
