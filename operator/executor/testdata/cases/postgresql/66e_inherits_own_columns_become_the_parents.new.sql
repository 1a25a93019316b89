CREATE TABLE p (a int, b text); CREATE TABLE d (d int) INHERITS (p);
