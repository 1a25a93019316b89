CREATE TABLE p(a int, b int, UNIQUE KEY u (a,b));
CREATE TABLE c(a int, b int, CONSTRAINT f FOREIGN KEY (a,b) REFERENCES p(a,b));
