CREATE TABLE c (a int, b text, c int); CREATE TABLE p2 (a int); CREATE VIEW v AS SELECT * FROM p2;
