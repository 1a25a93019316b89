CREATE TYPE e AS ENUM ('a', 'b');
CREATE TABLE t (id int, s e);
