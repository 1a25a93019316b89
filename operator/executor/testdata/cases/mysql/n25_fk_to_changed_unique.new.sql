CREATE TABLE p(a int, b int, x int, UNIQUE KEY u2 (a,b));
CREATE TABLE c(a int, b int, CONSTRAINT f FOREIGN KEY (a,b) REFERENCES p(a,b));
