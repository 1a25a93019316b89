CREATE TABLE l (id int, k int NOT NULL); CREATE TABLE l1 (id int, k int NOT NULL);
