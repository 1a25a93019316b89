CREATE TABLE t(b int, c int);
