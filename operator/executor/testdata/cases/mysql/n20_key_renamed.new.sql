CREATE TABLE t(a int, KEY l(a));
