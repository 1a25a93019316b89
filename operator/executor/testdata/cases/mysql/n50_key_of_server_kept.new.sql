CREATE TABLE p(id int PRIMARY KEY);
CREATE TABLE c(a int, b int, KEY f (a), KEY k (a,b), CONSTRAINT f FOREIGN KEY (a) REFERENCES p(id));
