CREATE TYPE mood AS ENUM ('a', 'b');
CREATE TABLE t (id int, s mood);
