CREATE TABLE t(a int, b text, KEY k(a) USING BTREE, FULLTEXT KEY f(b));
