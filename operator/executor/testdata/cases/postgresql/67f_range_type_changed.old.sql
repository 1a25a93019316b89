CREATE TYPE r AS RANGE (subtype = float8, multirange_type_name = mr); CREATE TABLE t (id int PRIMARY KEY, r r, m mr); INSERT INTO t VALUES (1, '[1,2)', '{[1,2)}');
