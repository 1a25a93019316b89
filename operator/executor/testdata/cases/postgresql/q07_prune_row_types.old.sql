CREATE TABLE a (x int, y int);
CREATE TABLE b (id int PRIMARY KEY, place a, places a[]);
CREATE FUNCTION far(p a) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT p.x > 10';
CREATE TYPE pair AS (l int, r text);
CREATE TABLE c (id int PRIMARY KEY, p pair);
