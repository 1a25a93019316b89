CREATE TABLE u(a int);
