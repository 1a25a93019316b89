CREATE TABLE t(id int PRIMARY KEY, a varchar(10), b int, KEY k(a), CONSTRAINT c CHECK (b > 0));
