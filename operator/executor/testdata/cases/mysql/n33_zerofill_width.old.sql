CREATE TABLE t(a int(5) zerofill);
