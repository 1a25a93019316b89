CREATE TABLE t(a bigint, b bigint AS (a+2), c bigint AS (b+2) STORED);
