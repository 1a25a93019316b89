CREATE TABLE d(a int);
