CREATE TABLE t(a int, v vector(3));
