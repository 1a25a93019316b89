CREATE TABLE t(a int);
CREATE TABLE v(a int);
