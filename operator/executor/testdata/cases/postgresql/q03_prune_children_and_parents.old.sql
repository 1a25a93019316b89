CREATE TABLE p (id int NOT NULL, at date);
CREATE TABLE c (extra text) INHERITS (p);
CREATE TABLE d (more text) INHERITS (p);
CREATE TABLE e (k int PRIMARY KEY);
