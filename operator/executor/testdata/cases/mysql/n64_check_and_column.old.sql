CREATE TABLE t(a int, b int, CONSTRAINT c CHECK (a < b), KEY k (a, b), UNIQUE KEY u (b));
