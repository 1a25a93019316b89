CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE DOMAIN feeling AS mood NOT NULL DEFAULT 'good';
CREATE DOMAIN short AS varchar(10) CHECK (length(VALUE) > 1);
CREATE TABLE a (id int PRIMARY KEY, f feeling, s short);
CREATE TABLE b (id int PRIMARY KEY, f feeling, s short);
CREATE INDEX b_bad ON b (id) WHERE f::mood = 'bad'::mood;
