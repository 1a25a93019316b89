CREATE TABLE a (id int PRIMARY KEY, n int NOT NULL);
CREATE FUNCTION highest() RETURNS int LANGUAGE sql STABLE BEGIN ATOMIC SELECT max(n) FROM a; END;
CREATE FUNCTION twice(i int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT i * 2';
CREATE TABLE b (id int PRIMARY KEY, n int DEFAULT highest(), t int GENERATED ALWAYS AS (twice(3)) STORED, CHECK (twice(id) > 0), note text DEFAULT twice(2)::text);
CREATE INDEX b_twice ON b (twice(n));
