CREATE TABLE p1 (a int); CREATE TABLE p2 (b int); CREATE TABLE c (a int, b int) INHERITS (p1, p2); CREATE TABLE d (a int, x int, b int) INHERITS (p2); CREATE TABLE e (a int, x int) INHERITS (p1);
