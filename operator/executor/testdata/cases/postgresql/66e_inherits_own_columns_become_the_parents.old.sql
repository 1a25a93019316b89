CREATE TABLE p (a int, b text); CREATE TABLE d (a int, b text, d int); INSERT INTO d VALUES (4, 'z', 5);
