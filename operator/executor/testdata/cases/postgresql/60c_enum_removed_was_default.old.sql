CREATE TYPE s AS ENUM ('draft', 'live', 'dead'); CREATE TABLE w (id int PRIMARY KEY, st s NOT NULL DEFAULT 'draft', t text DEFAULT ('draft'::s)::text, gone s, kind s DEFAULT 'live');
INSERT INTO w VALUES (1, 'live', 'x', 'draft'), (2, 'dead', 'y', 'draft');
