CREATE TYPE s AS ENUM ('c', 'a'); CREATE TABLE kind (st s PRIMARY KEY, words text); CREATE TABLE w (id int PRIMARY KEY, st s NOT NULL REFERENCES kind (st) ON DELETE CASCADE DEFERRABLE);
CREATE TABLE only_one (st s, during tstzrange, EXCLUDE USING gist (during WITH &&) WHERE (st = 'a'));
