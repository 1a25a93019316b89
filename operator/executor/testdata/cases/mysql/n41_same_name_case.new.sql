CREATE TABLE t(abc int, KEY kX (abc));
