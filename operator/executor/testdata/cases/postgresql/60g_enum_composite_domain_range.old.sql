CREATE TYPE s AS ENUM ('a', 'b', 'c'); CREATE DOMAIN d AS s DEFAULT 'a' CHECK (VALUE <> 'b'::s); CREATE TYPE pair AS (n int, st s, more d[]);
CREATE TYPE span AS RANGE (subtype = s);
CREATE TABLE w (id int PRIMARY KEY, d d NOT NULL, p pair, ps pair[], r span DEFAULT '[a,c)');
INSERT INTO w VALUES (1, 'c', '(1,a,"{a,c}")', ARRAY['(2,c,"{}")'::pair], '[a,c]'), (2, 'a', NULL, NULL, 'empty');
