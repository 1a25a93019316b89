CREATE TABLE t(a int DEFAULT (1+1), b varchar(9) DEFAULT (concat('x','y')), c date DEFAULT '2020-01-01');
