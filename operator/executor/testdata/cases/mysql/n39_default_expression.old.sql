CREATE TABLE t(a int DEFAULT 1, b varchar(9) DEFAULT 'x', c date DEFAULT (curdate()));
