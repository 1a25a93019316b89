CREATE TABLE t(a int, KEY k (a));
