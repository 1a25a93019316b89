CREATE TABLE p(a int, b int, UNIQUE KEY w (a), KEY x (b));
CREATE TABLE c(a int, CONSTRAINT f FOREIGN KEY (a) REFERENCES p(a));
