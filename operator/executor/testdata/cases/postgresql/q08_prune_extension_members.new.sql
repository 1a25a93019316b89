CREATE EXTENSION citext;
CREATE EXTENSION pg_trgm;
CREATE TABLE a (id int PRIMARY KEY, name citext UNIQUE);
CREATE TABLE b (id int PRIMARY KEY, name citext DEFAULT 'x', a citext REFERENCES a(name), other citext NOT NULL);
CREATE INDEX a_name ON a USING gin ((name::text) gin_trgm_ops);
CREATE INDEX b_name ON b USING gin ((name::text) gin_trgm_ops);
