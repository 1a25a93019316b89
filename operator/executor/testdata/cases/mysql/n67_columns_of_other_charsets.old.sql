CREATE TABLE t(a varchar(9), b varchar(9) CHARACTER SET ascii) CHARSET=latin1;
INSERT INTO t VALUES ('ä', 'b');
