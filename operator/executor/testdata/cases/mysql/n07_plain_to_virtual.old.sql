CREATE TABLE t(a int, b int, KEY k (b));
