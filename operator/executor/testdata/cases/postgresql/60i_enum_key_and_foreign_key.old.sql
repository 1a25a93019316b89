CREATE TYPE s AS ENUM ('a', 'b', 'c'); CREATE TABLE kind (st s PRIMARY KEY, words text); CREATE TABLE w (id int PRIMARY KEY, st s NOT NULL REFERENCES kind (st) ON DELETE CASCADE DEFERRABLE);
CREATE TABLE only_one (st s, during tstzrange, EXCLUDE USING gist (during WITH &&) WHERE (st = 'a'));
INSERT INTO kind VALUES ('a', 'x'), ('c', 'y'); INSERT INTO w VALUES (1, 'c'), (2, 'a');
