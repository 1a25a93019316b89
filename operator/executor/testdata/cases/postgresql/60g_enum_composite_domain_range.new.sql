CREATE TYPE s AS ENUM ('a', 'c', 'x'); CREATE DOMAIN d AS s DEFAULT 'a' CHECK (VALUE <> 'x'::s); CREATE TYPE pair AS (n int, st s, more d[]);
CREATE TYPE span AS RANGE (subtype = s);
CREATE TABLE w (id int PRIMARY KEY, d d NOT NULL, p pair, ps pair[], r span DEFAULT '[a,c)');
