CREATE TABLE t(a int(8) zerofill);
