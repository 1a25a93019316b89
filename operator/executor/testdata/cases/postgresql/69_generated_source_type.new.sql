CREATE TABLE t (a bigint, g bigint GENERATED ALWAYS AS (a * 2) STORED);
