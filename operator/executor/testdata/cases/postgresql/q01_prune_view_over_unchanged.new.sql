CREATE TABLE a (id int PRIMARY KEY, name text);
CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a, n int, note varchar(20));
CREATE VIEW names AS SELECT a.name, b.n FROM a JOIN b ON b.a = a.id;
CREATE MATERIALIZED VIEW counted AS SELECT name, count(*) FROM names GROUP BY name;
CREATE INDEX counted_name ON counted (name);
