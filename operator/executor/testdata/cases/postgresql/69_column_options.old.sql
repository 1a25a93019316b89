CREATE TABLE t (id int);
ALTER TABLE t ALTER COLUMN id SET (n_distinct=5);
