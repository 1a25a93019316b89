CREATE TABLE t(a int, v vector(4), w vector(2) COMMENT 'w');
