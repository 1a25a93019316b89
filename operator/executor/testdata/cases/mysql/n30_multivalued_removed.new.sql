CREATE TABLE t(j json);
