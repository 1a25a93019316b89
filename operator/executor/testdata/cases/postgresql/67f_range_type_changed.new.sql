CREATE TYPE r AS RANGE (subtype = float8, subtype_diff = float8mi, multirange_type_name = mr); CREATE TABLE t (id int PRIMARY KEY, r r, m mr);
