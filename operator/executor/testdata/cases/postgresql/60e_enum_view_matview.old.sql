CREATE TYPE s AS ENUM ('a', 'b', 'c'); CREATE TABLE w (id int PRIMARY KEY, st s);
CREATE VIEW v AS SELECT id, st FROM w WHERE st <> 'b'; CREATE VIEW vv AS SELECT count(*) AS n, st FROM v GROUP BY st;
CREATE MATERIALIZED VIEW mv AS SELECT st, array_agg(id) AS ids FROM w GROUP BY st; CREATE UNIQUE INDEX mv_st ON mv (st);
CREATE VIEW constant AS SELECT 'c'::s AS always;
COMMENT ON VIEW v IS 'kept'; GRANT SELECT ON v TO reader; GRANT SELECT ON mv TO reader;
INSERT INTO w VALUES (1, 'a'), (2, 'c');
